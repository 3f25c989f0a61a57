use crate::kit::{Home, Said, entry};

#[test]
fn a_deleted_session_waits_in_the_trash_and_comes_back_whole() {
    let home = Home::new();
    home.conversation("s", 2);
    let told = "Moved session s to the trash; `rethread restore s` takes it out again.\n";
    assert_eq!(home.run(&["delete", "s"]), Said::told(told));
    let refused = Said::error(1, "session s is in the trash", "`rethread restore s` takes it out again");
    assert_eq!(home.run(&["show", "s"]), refused);
    assert_eq!(home.feed(&["append", "s"], entry(3)), refused);
    assert_eq!(home.run(&["restore", "s"]), Said::told("Took session s out of the trash.\n"));
    assert_eq!(home.run(&["restore", "s"]), Said::told("Session s is not in the trash.\n"));
    assert_eq!(home.answer(&["show", "s", "--json"]), entry(1) + &entry(2));
}

#[test]
fn forks_outlive_the_deletion_and_the_purge_of_their_parent() {
    let home = Home::new();
    home.conversation("s", 2);
    home.answer(&["fork", "s", "--id", "f"]);
    home.run(&["delete", "s"]);
    assert_eq!(home.answer(&["show", "f", "--json"]), entry(1) + &entry(2));
    assert_eq!(home.run(&["purge", "s"]), Said::told("Removed session s for good.\n"));
    assert_eq!(home.answer(&["show", "f", "--json"]), entry(1) + &entry(2));
    assert_eq!(home.run(&["restore", "s"]).code, 1);
}

#[test]
fn a_short_id_purges_only_what_is_in_the_trash() {
    let home = Home::new();
    home.conversation("session", 1);
    let hint = "`rethread delete session` moves it there, `rethread purge session` removes it at once";
    assert_eq!(home.run(&["purge", "ses"]), Said::error(1, "session session is not in the trash", hint));
    home.run(&["delete", "ses"]);
    assert_eq!(home.run(&["purge", "ses"]).code, 0);
    home.conversation("session", 1);
    assert_eq!(home.run(&["purge", "session"]).code, 0);
}

#[test]
fn an_archived_session_is_no_longer_the_latest_until_it_is_taken_out() {
    let home = Home::new();
    home.conversation("s", 1);
    let told = "Archived session s; `rethread archive --undo s` takes it out again.\n";
    assert_eq!(home.run(&["archive", "s"]), Said::told(told));
    assert_eq!(home.run(&["show", "--latest"]).code, 1);
    assert_eq!(home.run(&["archive", "s", "--undo"]), Said::told("Took session s out of the archive.\n"));
    assert_eq!(home.answer(&["show", "--latest", "--json"]), entry(1));
}
