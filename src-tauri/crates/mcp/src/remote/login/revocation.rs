//! Token revocation (RFC 7009).

use super::LoginServer;
use super::http_client::LoginHttpClient;
use super::stored::StoredLogin;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request};
use url::form_urlencoded::{Serializer, byte_serialize};

impl StoredLogin {
    /// Revokes the access token and the refresh token, if there is one. Returns `true` if the authorization server
    /// confirms the revocation of the last token.
    pub async fn revoke(&self, server: &LoginServer) -> bool {
        let http = LoginHttpClient::new(server.clone());
        let refresh = self.refresh_token.iter().map(|token| (token, "refresh_token"));
        let mut is_revoked = false;
        // Revoking a refresh token does not always revoke its access tokens (RFC 7009, section 2.1).
        for (token, kind) in std::iter::once((&self.access_token, "access_token")).chain(refresh) {
            let Some(request) = self.revocation_request(token, kind) else { return false };
            is_revoked = http.fetch(request).await.is_ok_and(|answer| answer.status().is_success());
        }
        is_revoked
    }

    /// Returns the revocation request, or `None` if the authorization server does not support revocation.
    fn revocation_request(&self, token: &str, kind: &str) -> Option<Request<Vec<u8>>> {
        let mut request = Request::new(Vec::new());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.revocation_endpoint.as_ref()?.parse().ok()?;
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(header::CONTENT_TYPE, form);
        let mut body = Serializer::new(String::new());
        body.append_pair("token", token).append_pair("token_type_hint", kind);
        if let (Some(secret), true) = (&self.client_secret, self.uses_basic_auth()) {
            let written = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", written(&self.client_id), written(secret));
            let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(pair))).ok()?;
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
        } else {
            let secret = self.client_secret.iter().map(|secret| ("client_secret", secret));
            body.append_pair("client_id", &self.client_id).extend_pairs(secret);
        }
        *request.body_mut() = body.finish().into_bytes();
        Some(request)
    }

    fn uses_basic_auth(&self) -> bool {
        let methods = &self.token_endpoint_auth_methods;
        methods.is_empty() || methods.iter().any(|method| method == "client_secret_basic")
    }
}
