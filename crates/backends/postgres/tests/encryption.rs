//! TLS and passwords, as a server asks for them that takes nothing else.

use std::path::Path;

use pollster::block_on;
use rethread_postgres::{PostgresBackend, Settings};
use rethread_store::Result;
use rethread_store::backend::{Backend as _, Expect, Hint, Key};
use rethread_testkit::Postgres;

use crate::kit::installed;

const WHO: &str = "local all all trust
hostssl all all 127.0.0.1/32 scram-sha-256
";

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).to_str().unwrap().to_owned()
}

fn try_to_put(port: u16, host: &str, parameters: &str) -> Result<(), String> {
    let url = format!("postgres://ada:se%40cret@{host}:{port}/postgres?{parameters}");
    let backend = PostgresBackend::new(Settings::parse(&url).unwrap()).unwrap();
    let put = block_on(backend.put(&Key::store("format").unwrap(), b"1", Expect::Any));
    if put.is_ok() {
        // Whoever listens gets in the same way.
        assert_eq!(backend.hints().unwrap().recv_blocking(), Ok(Hint::Everything));
    }
    put.map(drop).map_err(|error| {
        let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
        let told = causes.fold(error.to_string(), |told, cause| format!("{told}: {cause}"));
        assert!(!told.contains("cret"), "{told}");
        told
    })
}

#[test]
fn sslmode_decides_what_is_encrypted_and_who_is_trusted() {
    let (certificate, private) = (std::fs::read_to_string(fixture("server.pem")), fixture("server.key"));
    let (certificate, private) = (certificate.unwrap(), std::fs::read_to_string(private).unwrap());
    let files = [("server.crt", certificate.as_str()), ("server.key", &private), ("pg_hba.conf", WHO)];
    let Some(server) = installed(Postgres::start(&["ssl=on"], &files)) else { return };
    server.sql("postgres", "CREATE ROLE ada LOGIN SUPERUSER PASSWORD 'se@cret'");
    let (authority, stranger) = (fixture("authority.pem"), fixture("stranger.pem"));
    let port = server.port();
    for (host, parameters) in [
        ("127.0.0.1", String::new()),
        ("127.0.0.1", "sslmode=require&channel_binding=require".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={authority}")),
        ("localhost", format!("sslmode=verify-full&sslrootcert={authority}")),
    ] {
        assert_eq!(try_to_put(port, host, &parameters), Ok(()), "{parameters}");
    }
    for (host, parameters, reason) in [
        ("127.0.0.1", "sslmode=disable".to_owned(), "no pg_hba.conf entry"),
        ("127.0.0.1", format!("sslmode=require&sslrootcert={stranger}"), "certificate"),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={stranger}"), "certificate"),
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={authority}"), "certificate"),
        ("localhost", "sslmode=verify-full".to_owned(), "certificate"),
        ("localhost", "sslmode=verify-full&sslrootcert=/nowhere".to_owned(), "/nowhere"),
    ] {
        let refused = try_to_put(port, host, &parameters).unwrap_err();
        assert!(refused.contains(reason), "{parameters}: {refused}");
    }
}

#[test]
fn a_wrong_password_is_refused_and_not_told() {
    let hba = "local all postgres trust\nlocal all all scram-sha-256\n";
    let Some(server) =
        installed(Postgres::start(&[], &[("pg_hba.conf", &hba.replace("postgres", "rethread"))]))
    else {
        return;
    };
    server.sql("postgres", "CREATE ROLE ada LOGIN SUPERUSER PASSWORD 'right'");
    let url = server.url("postgres").replace("rethread@", "ada@");
    let get = |password: Option<&str>| {
        let mut settings = Settings::parse(&url).unwrap();
        settings.password = password.map(str::to_owned);
        let backend = PostgresBackend::new(settings).unwrap();
        block_on(backend.get(&Key::store("format").unwrap())).map_err(|error| format!("{error:?}"))
    };
    assert_eq!(get(Some("right")), Ok(None));
    let refused = get(Some("wr0ng")).unwrap_err();
    assert!(refused.contains("password authentication failed") && !refused.contains("wr0ng"), "{refused}");
    assert!(get(None).unwrap_err().contains("password missing"));
}

#[test]
fn a_server_that_knows_its_clients_by_certificates_lets_in_who_has_one_and_nobody_else() {
    let read = |name: &str| std::fs::read_to_string(fixture(name)).unwrap();
    let (certificate, private, clients) = (read("server.pem"), read("server.key"), read("clients.pem"));
    let who = "local all all trust\nhostssl all all 127.0.0.1/32 cert\n";
    let files = [
        ("server.crt", certificate.as_str()),
        ("server.key", &private),
        ("clients.crt", &clients),
        ("pg_hba.conf", who),
    ];
    let started = Postgres::start(&["ssl=on", "ssl_ca_file=clients.crt"], &files);
    let Some(server) = installed(started) else { return };
    server.sql("postgres", "CREATE ROLE ada LOGIN SUPERUSER");
    let with = |certificate: &str| {
        let (certificate, key) = (fixture(certificate), fixture("client.key"));
        let authority = fixture("authority.pem");
        format!("sslmode=verify-full&sslrootcert={authority}&sslcert={certificate}&sslkey={key}")
    };
    assert_eq!(try_to_put(server.port(), "localhost", &with("client.pem")), Ok(()));
    for (parameters, reason) in [
        ("sslmode=require".to_owned(), "certificate"),
        (with("impostor.pem"), "unknown"),
        (with("nowhere.pem"), "nowhere.pem"),
    ] {
        let refused = try_to_put(server.port(), "localhost", &parameters).unwrap_err();
        assert!(refused.to_lowercase().contains(reason), "{parameters}: {refused}");
    }
}
