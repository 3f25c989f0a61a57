//! Decisions about what another keeper asks: said in the session, carried out by whoever drives it.

use std::sync::Arc;
use std::time::Duration;

use rethread_store::SessionId;

use super::driven::Proposal;
use crate::attention::{Attention, AttentionState, Undecided, Verdict};
use crate::capture::blocking;
use crate::error::Error;
use crate::keeper::Keeper;

/// How long the other keeper may take, and how often it is looked whether it has.
const PATIENCE: Duration = Duration::from_secs(15);
const PERIOD: Duration = Duration::from_millis(100);

impl Keeper {
    /// Decides about a request of another keeper, and waits until that one has taken it. Only the driving keeper judges
    /// what counts; what is said here is the first decision about exactly what was shown, or nothing.
    pub(crate) async fn decide_elsewhere(
        self: &Arc<Self>,
        attention: Attention,
        digest: &str,
        verdict: Verdict,
        by: &str,
    ) -> Result<Attention, Undecided> {
        if attention.digest != digest || attention.shown.digest() != digest {
            return Err(Undecided::Changed(Box::new(attention)));
        }
        if attention.state != AttentionState::Pending {
            return Err(Undecided::Over(Box::new(attention)));
        }
        let failed = |error: rethread_store::Error| Undecided::Failed(Error::Store(error));
        let session: SessionId = attention.shown.session_id.parse().map_err(failed)?;
        let by = format!("{by} at {}", self.place.host);
        let wanted = verdict.state();
        let proposal = Proposal::new(digest, verdict, by.clone());
        let (store, id, request, own) =
            (self.store().clone(), session.clone(), attention.shown.id.clone(), proposal.clone());
        let proposed = blocking(async move {
            let propose = move |metadata: &mut rethread_store::Metadata| own.propose(&request, metadata);
            store.open(&id).await?.update(propose).await
        });
        let there = Proposal::all_of(&proposed.await.map_err(failed)?);
        let first = there.into_iter().find(|(id, _)| *id == attention.shown.id);
        if first.is_some_and(|(_, first)| first.nonce != proposal.nonce) {
            return Err(Undecided::Over(Box::new(attention)));
        }
        self.door.audit.write(
            "propose-decision",
            &by,
            serde_json::json!({
                "request": attention.shown.id, "session": attention.shown.session_id, "digest": digest,
            }),
        );
        let heard = async {
            loop {
                self.look_at_one(&session).await.map_err(Undecided::Failed)?;
                match self.others.request(&attention.shown.id) {
                    Some(now) if now.state == AttentionState::Pending => {}
                    // The same one may have said something else elsewhere, and be heard first.
                    Some(now) if now.state == wanted && now.decided_by.as_deref() == Some(&by) => {
                        return Ok(now);
                    }
                    Some(now) => return Err(Undecided::Over(Box::new(now))),
                    None => return Err(Undecided::Over(Box::new(attention.clone()))),
                }
                tokio::time::sleep(PERIOD).await;
            }
        };
        tokio::time::timeout(PATIENCE, heard).await.unwrap_or(Err(Undecided::Unheard))
    }
}
