//! Token revocation (RFC 7009).

use super::LoginServer;
use super::http_client::LoginHttpClient;
use super::stored::StoredLogin;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::future::join_all;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, StatusCode};
use std::time::Duration;
use url::form_urlencoded::{Serializer, byte_serialize};

/// Timeout for revoking the tokens of a login.
const TIMEOUT: Duration = Duration::from_secs(15);

impl StoredLogin {
    /// Revokes the access token and the refresh token, if there is one. Returns `true` if the authorization server
    /// confirms each revocation within 15 s.
    pub async fn revoke(&self, server: &LoginServer) -> bool {
        let http = LoginHttpClient::new(server.clone());
        let refresh = self.refresh_token.iter().map(|token| (token, "refresh_token"));
        // Revoking a refresh token does not always revoke its access tokens (RFC 7009, section 2.1).
        let tokens = std::iter::once((&self.access_token, "access_token")).chain(refresh);
        let revocations = tokens.map(|(token, kind)| async {
            let sent = self.send_revocation(&http, token, (kind, self.client_secret.as_deref())).await;
            // The Python SDK requires the parameter `client_secret` also for a client without a secret. An empty secret
            // means the same as no secret (RFC 6749, section 2.3.1).
            if sent == Some(StatusCode::BAD_REQUEST) && self.client_secret.is_none() {
                return self
                    .send_revocation(&http, token, (kind, Some("")))
                    .await
                    .is_some_and(|status| status.is_success());
            }
            sent.is_some_and(|status| status.is_success())
        });
        let revocations = tokio::time::timeout(TIMEOUT, join_all(revocations)).await;
        revocations.is_ok_and(|revoked| revoked.into_iter().all(|is_revoked| is_revoked))
    }

    /// Sends a revocation request. Returns the response's status, or `None` if the authorization server does not support
    /// revocation or does not respond.
    async fn send_revocation(
        &self,
        http: &LoginHttpClient,
        token: &str,
        (kind, client_secret): (&str, Option<&str>),
    ) -> Option<StatusCode> {
        let request = self.revocation_request(token, (kind, client_secret))?;
        Some(http.fetch(request).await.ok()?.status())
    }

    /// Returns the revocation request, or `None` if the authorization server does not support revocation.
    fn revocation_request(
        &self,
        token: &str,
        (kind, client_secret): (&str, Option<&str>),
    ) -> Option<Request<Vec<u8>>> {
        let mut request = Request::new(Vec::new());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.revocation_endpoint.as_ref()?.parse().ok()?;
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(header::CONTENT_TYPE, form);
        let mut body = Serializer::new(String::new());
        body.append_pair("token", token).append_pair("token_type_hint", kind);
        body.append_pair("client_id", &self.client_id);
        if let (Some(secret), true) =
            (client_secret.filter(|secret| !secret.is_empty()), self.uses_basic_auth())
        {
            let written = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", written(&self.client_id), written(secret));
            let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(pair))).ok()?;
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
        } else {
            body.extend_pairs(client_secret.map(|secret| ("client_secret", secret)));
        }
        *request.body_mut() = body.finish().into_bytes();
        Some(request)
    }

    fn uses_basic_auth(&self) -> bool {
        let methods = &self.token_endpoint_auth_methods;
        methods.is_empty() || methods.iter().any(|method| method == "client_secret_basic")
    }
}
