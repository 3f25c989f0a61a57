//! The page apart from its keeper: served here, with logins of its own, for a keeper that may be on another machine.
//!
//! The keeper's token stays in this process. A browser shows the cookie that it got here, passes the same gate as at a
//! keeper, and what it asks for is asked of the keeper with the token.

mod keeper_url;
mod pass;
mod remote;
mod running;
mod settings;
mod tls;

pub use keeper_url::KeeperUrl;
pub use running::RunningUi;
pub use settings::{PORT as UI_PORT, UiSettings};
