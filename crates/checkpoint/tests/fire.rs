//! What `make torture` runs for long.

mod hostile;
mod random_trees;
