//! Frames as they are written to a socket: those that stand one after the other in memory are one piece.

use std::io::IoSlice;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::frame::Frame;

/// How many pieces one call writes at most.
const AT_ONCE: usize = 64;

/// What to write.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    pieces: Vec<Frame>,
    frames: usize,
    length: usize,
}

impl FromIterator<Frame> for Wire {
    fn from_iter<T: IntoIterator<Item = Frame>>(frames: T) -> Self {
        let mut wire = Self::default();
        frames.into_iter().for_each(|frame| wire.add(&frame));
        wire
    }
}

impl Wire {
    pub(crate) fn add(&mut self, frame: &Frame) {
        self.frames += 1;
        self.length += frame.len();
        let is_joined = self.pieces.last_mut().is_some_and(|last| last.join(frame));
        if !is_joined {
            self.pieces.push(frame.clone());
        }
    }

    /// Returns how many frames there are.
    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    /// Returns how many bytes they have.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.pieces.iter().flat_map(|piece| piece.whole().to_vec()).collect()
    }

    /// Writes all of it with as few calls as the system allows.
    pub(crate) async fn write_to(&self, io: &mut (impl AsyncWrite + Unpin)) -> std::io::Result<()> {
        let pieces = &self.pieces;
        let (mut at, mut within) = (0, 0);
        while at < pieces.len() {
            let mut parts = [IoSlice::new(&[]); AT_ONCE];
            let mut count = 0;
            for (part, piece) in parts.iter_mut().zip(&pieces[at..]) {
                let skipped = if count == 0 { within } else { 0 };
                *part = IoSlice::new(&piece.whole()[skipped..]);
                count += 1;
            }
            let mut written = io.write_vectored(&parts[..count]).await?;
            if written == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            while at < pieces.len() && written >= pieces[at].len() - within {
                written -= pieces[at].len() - within;
                (at, within) = (at + 1, 0);
            }
            within += written;
        }
        io.flush().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::frame::Drafts;

    /// A pipe that takes a few bytes at a time cuts frames everywhere.
    #[tokio::test]
    async fn frames_arrive_whole_and_in_order_however_little_a_socket_takes() {
        let mut frames: Vec<Frame> = (0..200).map(|number| Frame::text(&"x".repeat(number))).collect();
        for _ in 0..5 {
            let mut drafts = Drafts::new("e", Some(7), "session:s", "message.upsert");
            (0..9).for_each(|number| drafts.add(number));
            frames.extend(drafts.number(Some(7)));
        }
        // One that was left out leaves two pieces.
        frames.remove(205);
        let whole: Vec<u8> = frames.iter().flat_map(|frame| frame.whole().to_vec()).collect();
        for room in [1, 2, 3, 7, 64, 1000, 1 << 20] {
            let (mut ours, mut theirs) = tokio::io::duplex(room);
            let wire: Wire = frames.iter().cloned().collect();
            assert_eq!((wire.frames(), wire.len(), wire.pieces.len()), (frames.len(), whole.len(), 206));
            let writing = tokio::spawn(async move { wire.write_to(&mut ours).await });
            let mut read = Vec::new();
            theirs.read_to_end(&mut read).await.unwrap();
            writing.await.unwrap().unwrap();
            assert!(read == whole, "{room}");
        }
    }
}
