//! The suite that every backend passes.

use pollster::block_on;
use rethread_store::conformance;

use crate::kit::{on, server};

#[test]
fn the_contract_of_a_backend_holds() {
    let Some(server) = server() else { return };
    block_on(conformance::backend(|| on(&server.fresh())));
}

#[test]
fn the_contract_holds_between_two_handles() {
    let Some(server) = server() else { return };
    block_on(conformance::handles(|| {
        let url = server.fresh();
        (on(&url), on(&url))
    }));
}
