//! The suite that every backend passes.

use pollster::block_on;
use rethread_store::conformance;

use crate::kit::Place;

#[test]
fn the_contract_of_a_backend_holds() {
    if Place::new().is_none() {
        return;
    }
    block_on(conformance::backend(|| Place::new().unwrap().backend()));
}

#[test]
fn the_contract_holds_between_two_handles() {
    if Place::new().is_none() {
        return;
    }
    block_on(conformance::handles(|| {
        let place = Place::new().unwrap();
        (place.backend(), place.backend())
    }));
}
