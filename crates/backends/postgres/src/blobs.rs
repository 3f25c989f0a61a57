//! Contents under their hashes, in parts, so that a large one is neither read nor written at once.

use std::io::{self, Read};
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;
use rethread_store::{BlobId, Error, Result};
use sha2::{Digest as _, Sha256};

use crate::connection::Connection;
use crate::connections::Connections;

/// How large a part is.
const PART: usize = 1 << 20;
/// How much is sent at once of one that is larger.
const AT_ONCE: usize = 8 << 20;
/// How many contents are sent at once.
const MANY: usize = 1000;

type Postgres<T> = Result<T, tokio_postgres::Error>;

/// Stores content that comes piece by piece.
pub(crate) async fn put(
    connections: &Connections,
    blob: &BlobId,
    content: &mut (dyn Read + Send),
) -> Result<()> {
    let piece = take(content, blob)?;
    if piece.len() < AT_ONCE {
        check(blob, Sha256::new_with_prefix(&piece))?;
        return put_some(connections, &[(*blob, Bytes::from(piece))]).await;
    }
    // Too large for one statement: its parts belong to nothing until the last one is there and the hash is right.
    let id = connections.write("begin a blob in", begin).await?;
    let put = put_large(connections, id, blob, piece, content).await;
    if put.is_err() {
        // What cannot be removed now is swept later.
        let remove = |connection| remove_id(connection, id);
        drop(connections.write("give up a blob in", remove).await);
    }
    put
}

async fn put_large(
    connections: &Connections,
    id: i64,
    blob: &BlobId,
    mut piece: Vec<u8>,
    content: &mut (dyn Read + Send),
) -> Result<()> {
    let (mut hasher, mut number) = (Sha256::new(), 0);
    while !piece.is_empty() {
        hasher.update(&piece);
        let parts: Vec<&[u8]> = piece.chunks(PART).collect();
        let add = |connection, _| add_parts(connection, id, number, &parts);
        connections.write_again("put a blob into", add).await?;
        number += parts.len() as i32;
        piece = take(content, blob)?;
    }
    check(blob, hasher)?;
    let finish = |connection, _| finish(connection, id, blob);
    connections.write_again("finish a blob in", finish).await
}

/// Stores contents that are in memory.
pub(crate) async fn put_all(connections: &Connections, blobs: &[(BlobId, Bytes)]) -> Result<()> {
    if let Some((wrong, _)) = blobs.iter().find(|(blob, content)| !blob.fits(content)) {
        return Err(Error::WrongBlob(*wrong));
    }
    let mut rest = blobs;
    while !rest.is_empty() {
        let mut size = 0;
        let fit = rest.iter().take(MANY).take_while(|(_, content)| {
            size += content.len();
            size <= AT_ONCE
        });
        let (now, later) = rest.split_at(fit.count().max(1));
        put_some(connections, now).await?;
        rest = later;
    }
    Ok(())
}

/// Stores contents that are not too many for one statement. Only those are sent that are not there already.
async fn put_some(connections: &Connections, blobs: &[(BlobId, Bytes)]) -> Result<()> {
    // All in the same order, so that nobody waits for one who waits for him.
    let mut blobs: Vec<&(BlobId, Bytes)> = blobs.iter().collect();
    blobs.sort_by_key(|(blob, _)| *blob);
    blobs.dedup_by_key(|(blob, _)| *blob);
    let hashes: Vec<&[u8]> = blobs.iter().map(|(blob, _)| blob.as_bytes()).collect();
    let sound =
        connections.write_again("put blobs into", |connection, _| make_young(connection, &hashes)).await?;
    blobs.retain(|(blob, _)| !sound.iter().any(|hash| hash[..] == *blob.as_bytes()));
    if blobs.is_empty() {
        return Ok(());
    }
    let add = |connection, _| store(connection, &blobs);
    connections.write_again("put blobs into", add).await
}

fn take(content: &mut (dyn Read + Send), blob: &BlobId) -> Result<Vec<u8>> {
    let mut piece = Vec::new();
    let read = io::Read::take(content, AT_ONCE as u64).read_to_end(&mut piece);
    read.map_err(Error::io("read the content of", blob.to_string()))?;
    Ok(piece)
}

fn check(blob: &BlobId, hasher: Sha256) -> Result<()> {
    if blob.fits_hashed(hasher) { Ok(()) } else { Err(Error::WrongBlob(*blob)) }
}

/// Makes those young that are there, and are what they should be. One that is damaged goes, to be stored anew;
/// what is sealed is not the hash of anything.
async fn make_young(connection: Connection, hashes: &[&[u8]]) -> Postgres<Vec<Vec<u8>>> {
    let sql = "WITH there AS (
            SELECT id, length(hash) > 32 OR hash = (
                SELECT sha256(coalesce(string_agg(bytes, '' ORDER BY number), '')) FROM rethread.parts WHERE blob = id
            ) AS sound
            FROM rethread.blobs WHERE hash = ANY($1) ORDER BY hash FOR UPDATE
        ), damaged AS (
            DELETE FROM rethread.blobs USING there WHERE blobs.id = there.id AND NOT sound
        )
        UPDATE rethread.blobs SET modified = clock_timestamp() FROM there WHERE blobs.id = there.id AND sound
        RETURNING hash";
    Ok(connection.ask(sql, &[&hashes]).await?.iter().map(|row| row.get(0)).collect())
}

async fn store(connection: Connection, blobs: &[&(BlobId, Bytes)]) -> Postgres<()> {
    let hashes: Vec<&[u8]> = blobs.iter().map(|(blob, _)| blob.as_bytes()).collect();
    let (mut of, mut numbers, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for (blob, content) in blobs {
        for (part, number) in content.chunks(PART).zip(0_i32..) {
            of.push(blob.as_bytes());
            numbers.push(number);
            parts.push(part);
        }
    }
    let sql = "WITH new AS (
            INSERT INTO rethread.blobs (hash) SELECT unnest($1::bytea[])
            ON CONFLICT (hash) DO UPDATE SET modified = clock_timestamp()
            RETURNING id, hash
        )
        INSERT INTO rethread.parts (blob, number, bytes)
        SELECT new.id, part.number, part.bytes
        FROM unnest($2::bytea[], $3::integer[], $4::bytea[]) AS part (hash, number, bytes) JOIN new USING (hash)
        ON CONFLICT (blob, number) DO NOTHING";
    connection.change(sql, &[&hashes, &of, &numbers, &parts]).await.map(drop)
}

async fn begin(connection: Connection) -> Postgres<i64> {
    let made = connection.ask("INSERT INTO rethread.blobs DEFAULT VALUES RETURNING id", &[]).await?;
    Ok(made.first().map_or(0, |row| row.get(0)))
}

async fn add_parts(connection: Connection, id: i64, number: i32, parts: &[&[u8]]) -> Postgres<()> {
    let sql =
        "WITH blob AS (UPDATE rethread.blobs SET modified = clock_timestamp() WHERE id = $1 RETURNING id)
        INSERT INTO rethread.parts (blob, number, bytes)
        SELECT blob.id, $2::integer + part.number::integer - 1, part.bytes
        FROM blob, unnest($3::bytea[]) WITH ORDINALITY AS part (bytes, number)
        ON CONFLICT (blob, number) DO NOTHING";
    connection.change(sql, &[&id, &number, &parts]).await.map(drop)
}

/// Gives what was written its name, in place of what had it: that may be damaged.
async fn finish(connection: Connection, id: i64, blob: &BlobId) -> Postgres<()> {
    let hash = blob.as_bytes();
    connection.begin().await?;
    // One at a time: the name can be given once.
    connection.ask("SELECT pg_advisory_xact_lock(hashtextextended(encode($1, 'hex'), 0))", &[&hash]).await?;
    connection.change("DELETE FROM rethread.blobs WHERE hash = $1 AND id <> $2", &[&hash, &id]).await?;
    let sql = "UPDATE rethread.blobs SET hash = $1, modified = clock_timestamp() WHERE id = $2";
    connection.change(sql, &[&hash, &id]).await?;
    connection.commit().await
}

/// Makes a blob young. Returns whether it is there.
pub(crate) async fn refresh(connection: Connection, blob: &BlobId) -> Postgres<bool> {
    let sql = "UPDATE rethread.blobs SET modified = clock_timestamp() WHERE hash = $1";
    Ok(connection.change(sql, &[&blob.as_bytes()]).await? > 0)
}

pub(crate) async fn get(
    connection: Connection,
    blob: &BlobId,
    range: &Range<u64>,
) -> Postgres<Option<Bytes>> {
    // The server cuts the first part and the last: often little is wanted of much.
    let sql = "SELECT substring(parts.bytes
                FROM greatest($2 - number::bigint * $4, 0)::integer + 1
                FOR (least($3 - number::bigint * $4, $4) - greatest($2 - number::bigint * $4, 0))::integer)
        FROM rethread.blobs LEFT JOIN rethread.parts
        ON parts.blob = blobs.id AND number::bigint >= $2::bigint / $4::bigint AND number::bigint * $4 < $3::bigint
        WHERE hash = $1 ORDER BY number";
    let (longest, part) = ((i32::MAX as u64) * PART as u64, PART as i64);
    let (start, end) = (range.start.min(longest), range.end.min(longest));
    let (start, end) = (start as i64, end.max(start) as i64);
    let rows = connection.ask(sql, &[&blob.as_bytes(), &start, &end, &part]).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut content = BytesMut::new();
    rows.iter()
        .filter_map(|row| row.get::<_, Option<&[u8]>>(0))
        .for_each(|part| content.extend_from_slice(part));
    Ok(Some(content.freeze()))
}

pub(crate) async fn remove(connection: Connection, blob: &BlobId) -> Postgres<bool> {
    Ok(connection.change("DELETE FROM rethread.blobs WHERE hash = $1", &[&blob.as_bytes()]).await? > 0)
}

/// Removes a blob that nobody has put since then, which the caller's clock says and the server's is to judge.
pub(crate) async fn remove_before(connection: Connection, blob: &BlobId, since: Timestamp) -> Postgres<bool> {
    let clock = connection.ask_one("SELECT clock_timestamp()", &[]).await?;
    let theirs: Timestamp = clock.map_or(Timestamp::UNIX_EPOCH, |row| row.get(0));
    // The answer was on its way for a while, so this is too early rather than too late.
    let since =
        since.saturating_add(theirs.duration_since(Timestamp::now())).unwrap_or(Timestamp::UNIX_EPOCH);
    let sql = "DELETE FROM rethread.blobs WHERE hash = $1 AND modified <= $2";
    let removed = connection.change(sql, &[&blob.as_bytes(), &since.max(Timestamp::UNIX_EPOCH)]).await?;
    Ok(removed > 0)
}

async fn remove_id(connection: Connection, id: i64) -> Postgres<()> {
    connection.change("DELETE FROM rethread.blobs WHERE id = $1", &[&id]).await.map(drop)
}

/// Removes what was begun long ago and never finished. Returns how many.
pub(crate) async fn sweep(connection: Connection) -> Postgres<u64> {
    let sql =
        "DELETE FROM rethread.blobs WHERE hash IS NULL AND modified < clock_timestamp() - interval '1 hour'";
    connection.change(sql, &[]).await
}
