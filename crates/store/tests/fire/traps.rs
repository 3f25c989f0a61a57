//! The traps that peers fell into, as far as they concern a store (`docs/proof.md` names those that come later), and
//! what fuzzing found on the way.
