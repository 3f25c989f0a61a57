//! One conversation out of a transcript.

use crate::node::{Kind, Marks, Node, Span};

/// Entries of a transcript, one after the other: a conversation from its root to a leaf, or all there are.
///
/// It only knows where they are; a [`Reader`](crate::Reader) gives their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    pub(crate) links: Vec<Link>,
}

/// One entry of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) span: Span,
    pub(crate) group: u64,
    pub(crate) kind: Kind,
    pub(crate) marks: Marks,
}

impl Link {
    /// Returns whether a person reading the conversation would want to see it.
    pub(crate) fn is_message(self) -> bool {
        let hidden = self.marks.has(Marks::META) || self.marks.has(Marks::TEAM);
        match self.kind {
            Kind::User | Kind::Assistant => !hidden,
            Kind::Attachment => self.marks.has(Marks::QUEUED),
            Kind::System | Kind::Progress => false,
        }
    }

    /// Returns whether two entries are parts of one API message.
    pub(crate) fn continues(self, before: Link) -> bool {
        self.group != 0 && self.group == before.group
    }
}

impl From<&Node> for Link {
    fn from(node: &Node) -> Self {
        Self { span: node.span, group: node.group, kind: node.kind, marks: node.marks }
    }
}

impl Chain {
    /// Returns how many entries there are, of every kind.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Keeps messages only: what was said, by whomever, without what the program put in between.
    pub fn messages(&self) -> Chain {
        Chain { links: self.links.iter().copied().filter(|link| link.is_message()).collect() }
    }

    /// Returns how many messages there are. The lines of one API message count once.
    pub fn message_count(&self) -> u64 {
        let mut before: Option<Link> = None;
        let mut count = 0;
        for &link in self.links.iter().filter(|link| link.is_message()) {
            count += u64::from(!before.is_some_and(|before| link.continues(before)));
            before = Some(link);
        }
        count
    }

    /// Returns its first messages, at most so many.
    pub fn first(&self, count: usize) -> Chain {
        let mut left = count;
        let ends = self.links.iter().enumerate().position(|(at, link)| {
            let begins = at == 0 || !link.continues(self.links[at - 1]);
            let is_over = begins && left == 0;
            left = left.saturating_sub(usize::from(begins));
            is_over
        });
        Chain { links: self.links[..ends.unwrap_or(self.links.len())].to_vec() }
    }

    /// Returns its last messages, at most so many.
    pub fn last(&self, count: usize) -> Chain {
        let mut left = count;
        let mut begins = self.links.len();
        for (at, link) in self.links.iter().enumerate().rev() {
            if left == 0 {
                break;
            }
            begins = at;
            left -= usize::from(at == 0 || !link.continues(self.links[at - 1]));
        }
        if count == 0 { Chain::default() } else { Chain { links: self.links[begins..].to_vec() } }
    }

    /// Returns its entries from the n-th on, of every kind.
    pub fn from(&self, entry: usize) -> Chain {
        Chain { links: self.links.get(entry..).unwrap_or_default().to_vec() }
    }

    /// Returns its first and its second half, for two threads to read.
    pub fn halves(&self) -> (Chain, Chain) {
        let (first, second) = self.links.split_at(self.links.len() / 2);
        (Chain { links: first.to_vec() }, Chain { links: second.to_vec() })
    }

    /// Returns where its entries are.
    pub fn spans(&self) -> impl Iterator<Item = Span> {
        self.links.iter().map(|link| link.span)
    }
}
