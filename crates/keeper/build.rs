//! Has the keeper built again when the page was: a folder that did not exist is nothing that the compiler looks at.

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist");
}
