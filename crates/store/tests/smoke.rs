use rethread_store::*;
use std::sync::Arc;

fn entry(n: usize) -> Entry {
    Entry::parse(format!(r#"{{"uuid":"u{n}","role":"user","content":"message {n}"}}"#)).unwrap()
}

#[test]
fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    pollster::block_on(async {
        let store = Store::new(FileBackend::new(dir.path().join("s")), Options::default());
        let session = store.create(NewSession::at("/tmp").name("x")).await.unwrap();
        let mut tickets = vec![];
        for n in 0..1000 {
            tickets.push(session.append(entry(n)).await.unwrap());
        }
        for t in tickets {
            t.await.unwrap();
        }
        let h = session.messages().await.unwrap();
        assert_eq!(h.records.len(), 1000);
        let fork = session.fork(Fork::default().at("u500".parse().unwrap())).await.unwrap();
        assert_eq!(fork.messages().await.unwrap().records.len(), 501);
        fork.append(entry(2000)).await.unwrap().await.unwrap();
        assert_eq!(fork.messages().await.unwrap().records.len(), 502);
        let at = session.at(&"u10".parse().unwrap()).await.unwrap();
        at.append(entry(3000)).await.unwrap().await.unwrap();
        assert_eq!(session.messages().await.unwrap().records.len(), 12);
        store.purge(session.id()).await.unwrap();
        assert_eq!(fork.messages().await.unwrap().records.len(), 502);
        assert_eq!(fork.messages().await.unwrap().gaps, vec![]);
        println!("{:?}", store.list(&Filter::default()).await.unwrap());
        store.close().unwrap();
    });
    let out = std::process::Command::new("sh").arg("-c").arg(format!("cd {} && find . | head -30; cat sessions/*/metadata.json; head -c 700 sessions/*/messages.jsonl; cat sessions/*/lock | head -c 700", dir.path().display())).output().unwrap();
    println!("{}", String::from_utf8_lossy(&out.stdout));
    let _ = Arc::new(1);
}
