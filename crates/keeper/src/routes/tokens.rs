//! Tokens for programs that use the session store.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::session_store::is_namespace;
use crate::door::Door;
use crate::extract::{Body, Part};
use crate::gate::Caller;
use crate::problem::Problem;
use crate::scope::Scope;
use crate::tokens::{TokenGrant, Tokens};

/// The tokens there are, without the tokens themselves.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenPage {
    items: Vec<TokenGrant>,
}

/// Lists the tokens of programs
#[utoipa::path(get, path = "/tokens", operation_id = "list_tokens", responses((status = 200, body = TokenPage), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    Extension(door): Extension<Arc<Door>>,
    scope: Scope,
) -> Result<Json<TokenPage>, Problem> {
    scope.whole()?;
    Ok(Json(TokenPage { items: tokens(&door)?.all() }))
}

/// A token to be made.
#[derive(Deserialize, ToSchema)]
pub(crate) struct NewToken {
    /// A person's name for it: 1 to 64 of `[A-Za-z0-9._-]`.
    #[schema(pattern = "^[A-Za-z0-9._-]{1,64}$")]
    name: String,
    /// The namespace that it opens; `default` if none is named.
    namespace: Option<String>,
}

/// A token that was made.
#[derive(Serialize, ToSchema)]
pub(crate) struct MadeToken {
    /// The token. It is shown here and never again.
    token: String,
    grant: TokenGrant,
}

/// Makes a token for a program that uses the session store, and nothing else
#[utoipa::path(post, path = "/tokens", operation_id = "create_token", request_body = NewToken, responses((status = 201, body = MadeToken), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn create(
    Extension(door): Extension<Arc<Door>>,
    scope: Scope,
    caller: Caller,
    Body(NewToken { name, namespace }): Body<NewToken>,
) -> Result<(StatusCode, Json<MadeToken>), Problem> {
    scope.whole()?;
    let namespace = namespace.unwrap_or_else(|| "default".into());
    if !is_namespace(&name) || !is_namespace(&namespace) {
        return Err(Problem::bad_request("names are 1 to 64 of A-Z a-z 0-9 . _ - and no leading dot"));
    }
    let made = tokens(&door)?.create(&name, &namespace).map_err(|error| Problem::failed(&error))?;
    let Some((token, grant)) = made else {
        return Err(Problem::conflict("exists", format!("there is a token {name} already"))
            .hint(format!("`rethread token {name} --revoke` ends it")));
    };
    door.audit.write("token-made", &caller.name(), json!({ "name": name, "namespace": namespace }));
    Ok((StatusCode::CREATED, Json(MadeToken { token, grant })))
}

/// Ends a token
#[utoipa::path(delete, path = "/tokens/{name}", operation_id = "revoke_token", params(("name" = String, Path)), responses((status = 204), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn revoke(
    Extension(door): Extension<Arc<Door>>,
    scope: Scope,
    caller: Caller,
    Part(name): Part,
) -> Result<StatusCode, Problem> {
    scope.whole()?;
    match tokens(&door)?.revoke(&name).map_err(|error| Problem::failed(&error))? {
        true => {
            door.audit.write("token-revoked", &caller.name(), json!({ "name": name }));
            Ok(StatusCode::NO_CONTENT)
        }
        false => Err(Problem::not_found("token")),
    }
}

/// A page that is served apart from its keeper has no tokens of its own.
fn tokens(door: &Door) -> Result<&Tokens, Problem> {
    door.credentials.tokens.as_ref().ok_or_else(|| Problem::not_found("place"))
}
