//! Contents, large and small.

use jiff::{SignedDuration, Timestamp};
use pollster::block_on;
use rethread_s3::S3Backend;
use rethread_store::backend::{Backend as _, Space, Target};
use rethread_store::{BlobId, Error};
use rethread_testkit::Mishap;

use crate::kit::Place;

fn later() -> Timestamp {
    Timestamp::now() + SignedDuration::from_hours(1)
}

fn large() -> Vec<u8> {
    (0..(19 << 20) + 7_u32).map(|number| (number % 251) as u8).collect()
}

fn put(backend: &S3Backend, content: &[u8]) -> BlobId {
    let blob = BlobId::of(content);
    block_on(backend.put_blob(&blob, &mut &*content)).unwrap();
    blob
}

#[test]
fn large_content_is_uploaded_in_parts_and_read_by_ranges() {
    let Some(place) = Place::new() else { return };
    let (backend, content) = (place.backend(), large());
    let blob = put(&backend, &content);
    let uploaded = place.way.requests();
    assert_eq!(uploaded.iter().filter(|asked| asked.contains("partNumber")).count(), 3);
    // The second time it is only made young.
    put(&backend, &content);
    assert!(place.way.requests().len() <= 3);
    for range in [0..10, (1 << 20) - 3..(1 << 20) + 3, (19 << 20)..u64::MAX, (30 << 20)..u64::MAX, 5..5] {
        let part = block_on(backend.get_blob(&blob, range.clone())).unwrap().unwrap();
        let end = (range.end as usize).min(content.len());
        assert_eq!(part, content[(range.start as usize).min(end)..end], "{range:?}");
    }
    // Content that is not what it is said to be leaves nothing behind.
    let wrong = block_on(backend.put_blob(&BlobId::of(b"else"), &mut &content[..]));
    assert!(matches!(wrong, Err(Error::WrongBlob(_))));
    assert_eq!((place.names("contents/").len(), place.names("blobs/").len()), (1, 1));
}

#[test]
fn large_content_is_whole_even_if_answers_are_lost() {
    for number in 0..6 {
        let Some(place) = Place::new() else { return };
        let (backend, content) = (place.backend(), large());
        put(&backend, b"to begin with");
        place.way.meet((0..number).map(|_| None).chain([Some(Mishap::LoseAnswer)]));
        let blob = put(&backend, &content);
        let found = block_on(place.backend().get_blob(&blob, 0..u64::MAX)).unwrap().unwrap();
        assert!(found == content, "answer {number} was lost");
    }
}

#[test]
fn content_is_removed_when_it_is_stale_and_comes_back_when_it_is_put_again() {
    let Some(place) = Place::new() else { return };
    let (backend, content) = (place.backend(), large());
    for content in [&b"small"[..], &content] {
        let blob = put(&backend, content);
        let names = || block_on(backend.list(Space::Blobs, None, 9)).unwrap().len();
        assert!(!block_on(backend.remove(&Target::StaleBlob(blob, Timestamp::now()))).unwrap());
        assert!(block_on(backend.remove(&Target::StaleBlob(blob, later()))).unwrap());
        assert!(!block_on(backend.remove(&Target::StaleBlob(blob, later()))).unwrap());
        assert_eq!((block_on(backend.get_blob(&blob, 0..1)).unwrap(), names()), (None, 0));
        assert_eq!(
            (block_on(backend.get_blob(&blob, 3..4)).unwrap(), place.names("contents/").len()),
            (None, 0)
        );
        put(&backend, content);
        assert_eq!(
            (block_on(backend.get_blob(&blob, 0..99)).unwrap().unwrap(), names()),
            (content[..99.min(content.len())].to_vec().into(), 1)
        );
        assert!(block_on(backend.remove(&Target::Blob(blob))).unwrap());
    }
}

#[test]
fn whoever_puts_content_while_it_is_cleared_away_wins() {
    let Some(place) = Place::new() else { return };
    let backend = place.backend();
    let blob = put(&backend, b"content");
    let way = rethread_testkit::S3::shared().unwrap().way();
    let sweeper = place.backend_by(&way);
    put(&sweeper, b"to begin with");
    // It was looked at and found stale; the request that clears it away is on its way.
    way.meet([Some(Mishap::KeepBack)]);
    way.requests();
    std::thread::scope(|scope| {
        let cleared = scope.spawn(|| block_on(sweeper.remove(&Target::StaleBlob(blob, later()))).unwrap());
        while !way.requests().iter().any(|asked| asked.starts_with("PUT")) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        put(&backend, b"content");
        way.let_through();
        assert!(!cleared.join().unwrap());
    });
    assert_eq!(block_on(backend.get_blob(&blob, 0..99)).unwrap().unwrap(), "content");
}

#[test]
fn uploads_that_nobody_refers_to_are_swept_and_those_in_use_are_not() {
    let Some(place) = Place::new() else { return };
    let (backend, content) = (place.backend(), large());
    let blob = put(&backend, &content);
    let stray = place.objects.join(format!("contents/{}!abc", BlobId::of(b"stray")));
    std::fs::write(&stray, "what somebody uploaded before he died").unwrap();
    assert_eq!(block_on(backend.sweep()).unwrap(), 1);
    assert!(!stray.try_exists().unwrap());
    assert!(block_on(backend.get_blob(&blob, 0..u64::MAX)).unwrap().unwrap() == content);
    assert_eq!(block_on(backend.sweep()).unwrap(), 0);
}
