//! Just enough of HTTP to be an API on the loopback.
//!
//! By hand, because the tests need what a library prevents: an answer that stops in the middle.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::TcpStream;

/// A request as it came.
pub(crate) struct Incoming {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// Reads one request; `None` if the caller has left.
pub(crate) fn read(stream: &TcpStream) -> Result<Option<Incoming>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Incoming { path, headers, body }))
}

/// Begins an answer that ends when the connection does.
pub(crate) fn begin(mut stream: &TcpStream, status: u16, content_type: &str) -> Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status} -\r\ncontent-type: {content_type}\r\nrequest-id: req_1\r\nconnection: close\r\n\r\n"
    )
}
