use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rethread_testkit::{Access, Postgres, S3};

use crate::kit::{Home, Said, cannot};

#[test]
fn a_store_is_a_path_or_a_url() {
    let home = Home::new();
    let path = home.path().join("else where");
    let path = path.to_str().unwrap();
    home.answer(&["--store", path, "new", "--id", "s"]);
    assert_eq!(home.run(&["--store", &format!("file:{path}"), "verify", "s"]).code, 0);
    assert_eq!(home.run(&["verify", "--store", &format!("file://{path}"), "s"]).code, 0);
    assert_eq!(home.run(&["verify", "s"]).code, 1);
}

/// Once, all of it stayed in the log beside the file, and a copy of the file alone had nothing.
#[test]
fn a_copy_of_the_one_file_of_a_database_has_what_commands_have_written() {
    let home = Home::new();
    home.answer(&["--store", "sqlite:s.db", "new", "--id", "talk"]);
    let said = home.feed(&["--store", "sqlite:s.db", "append", "talk"], crate::kit::entry(1));
    assert_eq!(said.code, 0, "{said:?}");
    for left in ["s.db-wal", "s.db-shm"] {
        assert!(!home.path().join(left).try_exists().unwrap(), "{left}");
    }
    fs::copy(home.path().join("s.db"), home.path().join("copy.db")).unwrap();
    let shown = home.answer(&["--store", "sqlite:copy.db", "show", "talk", "--json"]);
    assert_eq!(shown.lines().count(), 1);
}

#[test]
fn a_hint_names_the_same_store() {
    let home = Home::new();
    let told = "There are no sessions yet.\n\
                hint: `rethread --store 'my store' new` begins one, `rethread tour` shows around\n";
    assert_eq!(home.run(&["--store", "my store", "list"]), Said::told(told));
}

#[test]
fn an_unknown_scheme_is_answered_with_the_known_ones() {
    let home = Home::new();
    let hint = "a store is a path or one of encrypted+URL, file:PATH, memory:, off:, postgres://USER@HOST/DATABASE, s3://BUCKET/PREFIX, sqlite:FILE";
    for url in ["gopher://hole", "sqllite:x", ""] {
        let expected = Said::error(2, &format!("unknown store {url:?}"), hint);
        assert_eq!(home.run(&["--store", url, "list"]), expected, "{url}");
    }
    let said = home.run(&["--store", "file:", "list"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
}

#[test]
fn without_a_store_given_the_environment_and_then_the_home_decide() {
    let home = Home::new();
    let run = |variables: &[(&str, &str)]| {
        let mut command = home.command(&["new", "--id", "s"]);
        command.env_remove("RETHREAD_HOME").envs(variables.iter().copied());
        assert!(command.status().unwrap().success());
    };
    let folder = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    run(&[("RETHREAD_HOME", &folder("own")), ("XDG_DATA_HOME", &folder("data"))]);
    run(&[("XDG_DATA_HOME", &folder("data"))]);
    run(&[("XDG_DATA_HOME", "")]);
    for store in ["own", "data/rethread", ".local/share/rethread"] {
        assert!(home.path().join(store).join("sessions/s").is_dir(), "{store}");
    }
}

#[test]
fn claude_codes_own_folder_is_never_used() {
    let home = Home::new();
    let theirs = home.path().join(".claude");
    fs::create_dir(&theirs).unwrap();
    let hint = "`--store PATH` names a folder for rethread alone";
    for path in [".claude", ".claude/projects", "./.claude/../.claude/x"] {
        let expected = Said::error(2, &format!("{path} belongs to Claude Code"), hint);
        assert_eq!(home.run(&["--store", path, "new"]), expected);
    }
    assert_eq!(fs::read_dir(theirs).unwrap().count(), 0);
}

#[test]
fn a_memory_store_lives_as_long_as_the_command() {
    let home = Home::new();
    assert_eq!(home.answer(&["--store", "memory:", "new", "--id", "s"]), "s\n");
    assert_eq!(home.run(&["--store", "memory:", "show", "s"]).code, 1);
    assert!(!home.store().try_exists().unwrap());
}

#[test]
fn a_password_is_never_shown() {
    let home = Home::new();
    // Nobody listens there; the scheme is unknown; the parameter is.
    for url in [
        "postgres://ada:se-cret@127.0.0.1:1/x",
        "postgres://ada@127.0.0.1:1/x?password=se-cret",
        "pastgres://ada:se-cret@127.0.0.1:1/x",
        "postgres://ada:se-cret@127.0.0.1:1/x?sslmode=perhaps",
        "s3://ada:se-cret@team/x",
    ] {
        for words in [&["list"][..], &["new"], &["show", "s"]] {
            let said = home.run(&[&["--store", url], words].concat());
            assert!(said.code > 0 && !said.out.contains("cret") && !said.err.contains("cret"), "{said:?}");
        }
    }
    let said = home.run(&["--store", "postgres://ada:se-cret@127.0.0.1:1/x", "new"]);
    assert!(
        said.err.contains("postgres://ada@127.0.0.1:1/x") && said.err.contains("refused"),
        "{}",
        said.err
    );
}

#[test]
fn a_password_may_come_from_the_url_the_environment_or_a_file() {
    let hba = "local all rethread trust\nlocal all all scram-sha-256\n";
    let Some(server) = Postgres::start(&[], &[("pg_hba.conf", hba)]) else {
        return cannot("PostgreSQL is not installed: apt-get install postgresql");
    };
    server.sql("postgres", "CREATE ROLE ada LOGIN SUPERUSER PASSWORD 'right'");
    let mut home = Home::new();
    let file = home.path().join(".pgpass");
    fs::write(&file, "localhost:*:*:ada:right\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let url = server.url("postgres").replace("rethread@", "ada@");
    let code = |home: &Home, url: &str| home.run(&["--store", url, "doctor"]).code;
    assert_eq!(code(&home, &url), 0, "from the file");
    home.set([("PGPASSWORD", "wrong")]);
    assert_eq!(code(&home, &url), 1);
    assert_eq!(code(&home, &url.replace("ada@", "ada:right@")), 0, "the URL comes first");
    home.set([("PGPASSWORD", "right"), ("PGPASSFILE", "/nowhere")]);
    assert_eq!(code(&home, &url), 0, "from the environment");
}

#[test]
fn a_bucket_is_reached_as_the_environment_says() {
    let Some(server) = S3::shared() else { return cannot("there is no S3 server: scripts/setup s3") };
    let (url, way, mut home) = (format!("s3://{}/team/a", server.bucket()), server.way(), Home::new());
    home.add(way.variables());
    assert_eq!(home.answer(&["--store", &url, "new", "--id", "s"]), "s\n");
    assert_eq!(home.run(&["--store", &url, "verify", "s"]).code, 0);
    assert_eq!(home.run(&["--store", &url.replace("/a", "/b"), "verify", "s"]).code, 1, "another place");
    home.add(vec![("AWS_SECRET_ACCESS_KEY".into(), "wr0ng".into())]);
    let refused = home.run(&["--store", &url, "new"]);
    assert!(refused.code == 1 && refused.err.contains("SignatureDoesNotMatch"), "{refused:?}");
    assert!(!refused.err.contains("wr0ng"), "{refused:?}");
    assert!(!refused.err.contains('<') && refused.err.contains("hint: see whether $AWS_"), "{refused:?}");
    home.add(vec![
        ("AWS_SECRET_ACCESS_KEY".into(), "right".into()),
        ("AWS_ALLOW_HTTP".into(), "false".into()),
    ]);
    let refused = home.run(&["--store", &url, "list"]);
    assert!(refused.code == 2 && refused.err.contains("AWS_ALLOW_HTTP is not true"), "{refused:?}");
}

#[test]
fn a_bucket_whose_server_ignores_conditions_is_refused_when_it_is_listed_served_or_written_to() {
    let Some(server) = S3::start(Access::Open) else {
        return cannot("there is no S3 server: scripts/setup s3");
    };
    let commands = [&["list"][..], &["serve", "--listen", "127.0.0.1:0"], &["new"]];
    let ignored = [&["if-none-match"][..], &["if-match"], &["if-match", "if-none-match"]];
    // Also where nobody has kept anything yet.
    for (is_empty, ignored) in [true, false].into_iter().flat_map(|it| ignored.map(|ignored| (it, ignored))) {
        for words in commands {
            let (way, store) = (server.way(), format!("s3://{}/team", server.bucket()));
            let mut home = Home::new();
            home.set([("RETHREAD_STORE", &store)]);
            home.add(way.variables());
            assert_eq!(home.run(if is_empty { &["list"] } else { &["new"] }).code, 0);
            way.ignore(ignored);
            let mut command = home.through(&["timeout", "60"], words);
            let said = command.output().unwrap();
            let told = String::from_utf8_lossy(&said.stderr);
            assert_eq!(said.status.code(), Some(1), "{ignored:?} {words:?}: {told}");
            assert!(told.contains(" ignores If-") && told.contains("hint: use a server"), "{told}");
        }
    }
}
