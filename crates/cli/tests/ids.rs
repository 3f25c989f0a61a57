use crate::kit::{Home, Said, entry};

const ONE: &str = "0198f2c4-1a2b-7000-8000-000000000001";
const OTHER: &str = "0198f2c4-1a2b-7fff-8000-000000000002";

#[test]
fn any_beginning_that_no_other_id_has_names_a_session() {
    let home = Home::new();
    home.conversation(ONE, 1);
    home.conversation(OTHER, 2);
    assert_eq!(home.answer(&["show", "0198f2c4-1a2b-70", "--json"]), entry(1));
    assert_eq!(home.answer(&["show", OTHER, "--json"]), entry(1) + &entry(2));
    let told = "Moved session 0198f2c4-1a2b-70 to the trash; `rethread restore 0198f2c4-1a2b-70` takes it out again.\n";
    assert_eq!(home.run(&["delete", "0198f2c4-1a2b-70"]), Said::told(told));
}

#[test]
fn an_ambiguous_beginning_is_answered_with_the_candidates() {
    let home = Home::new();
    home.conversation(ONE, 0);
    home.conversation(OTHER, 0);
    let expected = Said::error(2, "2 sessions begin with 0198", "one of 0198f2c4-1a2b-70, 0198f2c4-1a2b-7f");
    for verb in ["show", "append", "fork", "delete", "verify", "tail"] {
        assert_eq!(home.run(&[verb, "0198"]), expected, "{verb}");
    }
}

#[test]
fn a_whole_id_wins_over_longer_ones() {
    let home = Home::new();
    home.conversation("a", 1);
    home.conversation("ab", 2);
    assert_eq!(home.answer(&["show", "a", "--json"]), entry(1));
}

#[test]
fn people_read_the_shortest_ids_that_are_unique_and_programs_whole_ones() {
    let home = Home::new();
    home.conversation(ONE, 0);
    assert!(home.answer(&["list"]).starts_with("0198f2c4  "));
    home.conversation(OTHER, 0);
    assert!(home.answer(&["list"]).starts_with("0198f2c4-1a2b-7f  "));
    assert!(home.answer(&["list", "--json"]).starts_with(&format!("{{\"session_id\":\"{OTHER}\"")));
}

#[test]
fn a_bad_id_is_asked_wrongly() {
    let home = Home::new();
    for bad in ["../x", ".hidden", "a b", "a/b", "", "ü", &"x".repeat(129)] {
        for words in [vec!["show", bad], vec!["new", "--id", bad], vec!["fork", "s", "--id", bad]] {
            let said = home.run(&words);
            assert_eq!((said.code, said.out.as_str()), (2, ""), "{words:?}");
            assert_eq!(said.err.lines().count(), 2, "{}", said.err);
            assert!(said.err.contains("hint: `rethread "), "{}", said.err);
        }
    }
    assert!(!home.store().try_exists().unwrap());
}

#[test]
fn a_mistyped_command_is_answered_with_one_line_and_a_hint() {
    let home = Home::new();
    let similar = Said::error(2, "unrecognized subcommand 'lisst'", "a similar subcommand exists: 'list'");
    assert_eq!(home.run(&["lisst"]), similar);
    let missing = "the following required arguments were not provided: <ID>";
    assert_eq!(home.run(&["append"]), Said::error(2, missing, "`rethread append <ID>`"));
    let both = home.run(&["show", "s", "--all", "--transcript"]);
    assert_eq!((both.code, both.err.lines().count()), (2, 2), "{}", both.err);
}
