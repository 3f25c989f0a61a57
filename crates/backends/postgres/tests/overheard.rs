//! What is said on the channel, as any other client hears it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use tokio_postgres::{AsyncMessage, NoTls};

/// What was said since somebody began to listen.
pub(crate) struct Overheard(Arc<Mutex<Vec<String>>>);

impl Overheard {
    /// Listens from now on, until the test is over.
    pub(crate) fn on(url: &str) -> Self {
        let said = Arc::new(Mutex::new(Vec::new()));
        let (url, heard, (ready, is_ready)) = (url.to_owned(), said.clone(), mpsc::channel());
        let listen = async move {
            let (client, mut connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            let listening = async {
                client.batch_execute("LISTEN rethread_appended").await.unwrap();
                ready.send(()).unwrap();
                std::future::pending::<()>().await;
            };
            let hearing = async {
                while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                    if let AsyncMessage::Notification(notification) = message {
                        heard.lock().unwrap().push(notification.payload().to_owned());
                    }
                }
            };
            tokio::join!(listening, hearing);
        };
        thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(listen);
        });
        is_ready.recv().unwrap();
        Self(said)
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}
