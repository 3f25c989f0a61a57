//! Objects that the S3 server of the tests has no room for: it makes names of files of theirs, and those are shorter than the
//! 1,024 bytes that real servers have.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::s3_proxy::Message;

/// The longest path of an object of which the server can still make the names of its files.
pub(crate) const LONGEST: usize = 150;

/// Those objects.
#[derive(Debug, Default)]
pub(crate) struct LongNames {
    /// By their paths as they stand in requests.
    objects: BTreeMap<String, Object>,
    /// The last name before each page of a listing that goes on, by its token.
    pages: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Object {
    bytes: Vec<u8>,
    modified: SystemTime,
}

impl Object {
    fn tag(&self) -> String {
        let sum = self.bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        format!("\"{sum:032x}\"")
    }

    /// What a listing says of it.
    fn listed(&self, key: &str) -> String {
        let (tag, size) = (self.tag().replace('"', "&quot;"), self.bytes.len());
        let modified = iso(self.modified);
        format!(
            "<Key>{key}</Key><LastModified>{modified}</LastModified><ETag>{tag}</ETag><Size>{size}</Size>"
        )
    }
}

impl LongNames {
    /// Does what the server would do, if it could.
    pub(crate) fn answer(&mut self, request: &Message, path: &str) -> Message {
        let now = self.objects.get(path).map(Object::tag);
        match (request.first.split(' ').next(), self.objects.get(path)) {
            (Some("PUT"), _) => {
                let refused = request.header("if-none-match").is_some_and(|_| now.is_some())
                    || request.header("if-match").is_some_and(|wanted| now.as_deref() != Some(wanted));
                if refused {
                    return Message::new("HTTP/1.1 412 Precondition Failed", b"");
                }
                let object = Object { bytes: request.body.clone(), modified: SystemTime::now() };
                let answer = Message::new("HTTP/1.1 200 OK", b"").with("etag", object.tag());
                self.objects.insert(path.to_owned(), object);
                answer
            }
            (Some("GET" | "HEAD"), Some(object)) => found(request, object),
            (Some("GET" | "HEAD"), None) => Message::new("HTTP/1.1 404 Not Found", b"NoSuchKey"),
            (Some("DELETE"), _) => {
                self.objects.remove(path);
                Message::new("HTTP/1.1 204 No Content", b"")
            }
            (method, _) => unreachable!("nobody does {method:?} to what has such a name"),
        }
    }

    /// Adds them to a page of a listing, wherever they belong. It may be longer than was asked for then.
    pub(crate) fn add_to_listing(&mut self, bucket: &str, query: &str, answer: Message) -> Message {
        let Ok(page) = String::from_utf8(answer.body.clone()) else { return answer };
        let mut all: BTreeMap<String, String> = page
            .split("<Contents>")
            .skip(1)
            .filter_map(|rest| rest.split_once("</Contents>"))
            .filter_map(|(contents, _)| Some((element(contents, "Key")?.to_owned(), contents.to_owned())))
            .collect();
        let token = parameter(query, "continuation-token");
        let begun = token.and_then(|token| self.pages.get(&token).cloned());
        let after = begun.or_else(|| parameter(query, "start-after")).unwrap_or_default();
        let next = element(&page, "NextContinuationToken");
        let last = all.keys().next_back().unwrap_or(&after).clone();
        if let Some(next) = next {
            self.pages.insert(next.to_owned(), last.clone());
        }
        let prefix = parameter(query, "prefix").unwrap_or_default();
        let is_here = |key: &String| *key > after && (next.is_none() || *key <= last);
        let added: Vec<(String, String)> = self
            .objects
            .iter()
            .filter_map(|(path, object)| Some((key(bucket, path)?, object)))
            .filter(|(key, _)| key.starts_with(&prefix) && is_here(key))
            .map(|(key, object)| (key.clone(), object.listed(&key)))
            .collect();
        if added.is_empty() {
            return answer;
        }
        all.extend(added);
        let contents: String = all.values().map(|it| format!("<Contents>{it}</Contents>")).collect();
        let end = page.find("<Contents>").or_else(|| page.find("</ListBucketResult>")).unwrap_or(page.len());
        let rest = page.rfind("</Contents>").map_or(end, |last| last + "</Contents>".len());
        let body = [&page[..end], &contents, &page[rest..]].concat();
        let mut headers = answer.headers;
        headers.retain(|(name, _)| name != "content-length");
        let length = ("content-length".to_owned(), body.len().to_string());
        headers.push(length);
        Message { first: answer.first, headers, body: body.into_bytes() }
    }

    /// Deletes those that a request names among others.
    pub(crate) fn delete_all(&mut self, bucket: &str, request: &Message) {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let named: Vec<&str> =
            body.split("<Key>").skip(1).filter_map(|it| it.split("</Key>").next()).collect();
        self.objects.retain(|path, _| key(bucket, path).is_none_or(|key| !named.contains(&key.as_str())));
    }
}

fn found(request: &Message, object: &Object) -> Message {
    let tag = object.tag();
    if request.header("if-none-match") == Some(&tag) {
        return Message::new("HTTP/1.1 304 Not Modified", b"");
    }
    let size = object.bytes.len();
    let range = request.header("range").and_then(|range| range.strip_prefix("bytes="));
    let answer = match range.and_then(|range| range.split_once('-')) {
        None => Message::new("HTTP/1.1 200 OK", &object.bytes),
        Some((from, to)) => {
            let from: usize = from.parse().unwrap_or(0);
            let to = to.parse().map_or(size, |to: usize| to.saturating_add(1)).min(size);
            if from >= to {
                return Message::new("HTTP/1.1 416 Range Not Satisfiable", b"InvalidRange");
            }
            let answer = Message::new("HTTP/1.1 206 Partial Content", &object.bytes[from..to]);
            answer.with("content-range", format!("bytes {from}-{}/{size}", to - 1))
        }
    };
    answer.with("etag", tag).with("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT")
}

/// Returns what stands in an element of XML.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

/// Returns the name of an object in a bucket.
fn key(bucket: &str, path: &str) -> Option<String> {
    Some(decoded(path.strip_prefix(bucket)?.strip_prefix('/')?))
}

fn parameter(query: &str, name: &str) -> Option<String> {
    let value = query.split('&').find_map(|word| word.split_once('=').filter(|(known, _)| *known == name));
    value.map(|(_, value)| decoded(value))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digits = |high: u8, low: u8| u8::from_str_radix(std::str::from_utf8(&[high, low]).ok()?, 16).ok();
        bytes.push(match byte {
            b'%' => rest.next().zip(rest.next()).and_then(|(high, low)| digits(high, low)).unwrap_or(b'%'),
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes a time as S3 does, to the second.
fn iso(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64;
    let (mut day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (mut year, mut month) = (1970, 1);
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    while day >= 365 + i64::from(is_leap(year)) {
        day -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    for days in [31, 28 + i64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{:02}.000Z", day + 1, second % 60)
}
