//! Checkpoints as an agent loop's recorder takes them.

use rethread_store::{CaptureError, CaptureFiles, EntryId, Tool};

use crate::capture::Moment;
use crate::checkpointer::Checkpointer;
use crate::tree::Window;

#[async_trait::async_trait]
impl CaptureFiles for Checkpointer {
    async fn before(&self, tool: &Tool) -> Result<EntryId, CaptureError> {
        let captured = match tool.paths.is_empty() {
            // What a shell will change nobody knows, so it is found out afterwards, against what is there now.
            true => {
                self.tree(Moment { message: tool.message.clone(), ..Moment::default() }, Window::Idle).await
            }
            false => Checkpointer::before(self, moment(tool), &tool.paths).await,
        };
        Ok(captured?.id)
    }

    async fn after(&self, tool: &Tool) -> Result<EntryId, CaptureError> {
        let captured = match tool.paths.is_empty() {
            true => self.tree(moment(tool), Window::Tools).await,
            false => Checkpointer::after(self, moment(tool), &tool.paths).await,
        };
        Ok(captured?.id)
    }
}

fn moment(tool: &Tool) -> Moment {
    Moment { id: None, message: tool.message.clone(), tool_use: vec![tool.id.clone()] }
}
