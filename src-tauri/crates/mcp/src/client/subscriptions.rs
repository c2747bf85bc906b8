//! `subscriptions/listen`: forwards the core's change notifications to the client's subscriptions.

use super::outputs::Outputs;
use super::request::RequestRefusal;
use crate::wire::{
    Fields, Id, LineGuard, Outgoing, Response, meta_key, notification_line, request_line, response_parts,
    rewrite_params,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// Maximum number of open subscriptions.
const MAX_COUNT: usize = 32;

/// Maximum number of followed resources per subscription.
const MAX_RESOURCES: usize = 256;

/// Maximum length of a notification's parameters in bytes. A longer notification is dropped, because each subscription
/// gets a copy.
const MAX_LEN: usize = 64 * 1024;

/// Kinds of notifications that a client can subscribe to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    #[serde(skip_serializing_if = "is_unset")]
    tools_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "is_unset")]
    prompts_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "is_unset")]
    resources_list_changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_subscriptions: Option<Vec<String>>,
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn is_unset(flag: &Option<bool>) -> bool {
    *flag != Some(true)
}

#[derive(Debug)]
struct Subscription {
    /// Id of the client's request.
    id: Id,
    filter: Filter,
    /// Number of resources whose subscription the core has not confirmed yet.
    unconfirmed: usize,
}

/// All open subscriptions.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(Vec<Subscription>);

/// Resource that the core must subscribe to for a client's subscription.
#[derive(Debug)]
pub(super) struct FollowedResource {
    pub(super) subscription: Id,
    pub(super) uri: String,
}

impl Subscriptions {
    pub(super) fn contains(&self, id: &Id) -> bool {
        self.0.iter().any(|subscription| subscription.id == *id)
    }

    /// Opens a subscription. Returns the resources that the core must subscribe to.
    pub(super) fn open(
        &mut self,
        id: &Id,
        params: &RawValue,
        supports_subscriptions: bool,
        outputs: &mut Outputs<'_>,
    ) -> Result<Vec<FollowedResource>, RequestRefusal> {
        #[derive(Deserialize)]
        struct ListenParams {
            #[serde(default)]
            notifications: Filter,
        }
        if self.0.len() >= MAX_COUNT {
            return Err(RequestRefusal::TooManySubscriptions(MAX_COUNT));
        }
        let ListenParams { notifications: mut filter } = serde_json::from_str(params.get())?;
        let mut uris = filter.resource_subscriptions.take().unwrap_or_default();
        uris.sort_unstable();
        uris.dedup();
        if uris.len() > MAX_RESOURCES {
            return Err(RequestRefusal::TooManyResources(MAX_RESOURCES));
        }
        let (existing, new): (Vec<String>, Vec<String>) =
            uris.into_iter().filter(|_| supports_subscriptions).partition(|uri| self.is_followed(uri));
        filter.resource_subscriptions = Some(existing).filter(|existing| !existing.is_empty());
        let subscription = Subscription { id: id.clone(), filter, unconfirmed: new.len() };
        if subscription.unconfirmed == 0 {
            subscription.acknowledge(outputs);
        }
        self.0.push(subscription);
        Ok(new.into_iter().map(|uri| FollowedResource { subscription: id.clone(), uri }).collect())
    }

    /// Handles the core's response to a request to follow a resource.
    pub(super) fn confirm(
        &mut self,
        resource: FollowedResource,
        is_confirmed: bool,
        outputs: &mut Outputs<'_>,
    ) {
        let Some(subscription) =
            self.0.iter_mut().find(|subscription| subscription.id == resource.subscription)
        else {
            return;
        };
        if is_confirmed {
            subscription.filter.resource_subscriptions.get_or_insert_default().push(resource.uri);
        }
        subscription.unconfirmed = subscription.unconfirmed.saturating_sub(1);
        if subscription.unconfirmed == 0 {
            subscription.acknowledge(outputs);
        }
    }

    /// Closes a subscription. Returns the resources that no subscription follows any longer.
    pub(super) fn close(&mut self, id: &Id) -> Vec<String> {
        let Some(index) = self.0.iter().position(|subscription| subscription.id == *id) else {
            return Vec::new();
        };
        let removed = self.0.remove(index);
        let uris = removed.filter.resource_subscriptions.unwrap_or_default();
        uris.into_iter().filter(|uri| !self.is_followed(uri)).collect()
    }

    /// Completes all subscriptions with a result, as a server does when it shuts down.
    pub(super) fn complete_all(&mut self, outputs: &mut Outputs<'_>) {
        for subscription in self.0.drain(..) {
            let meta = json!({ (meta_key::SUBSCRIPTION_ID): id_value(&subscription.id) });
            let Ok(result) = to_raw_value(&json!({ "resultType": "complete", "_meta": meta })) else {
                continue;
            };
            outputs.send_to_client(response_parts(&subscription.id, Response::Result(result)));
        }
    }

    /// Forwards a notification to the subscriptions that include it. Returns `true` if clients can subscribe to
    /// notifications of this kind.
    pub(super) fn send(
        &self,
        method: &str,
        params: Option<&RawValue>,
        guard: LineGuard,
        outputs: &mut Outputs<'_>,
    ) -> bool {
        let wants: &dyn Fn(&Filter) -> bool = match method {
            "notifications/tools/list_changed" => &|filter| filter.tools_list_changed == Some(true),
            "notifications/prompts/list_changed" => &|filter| filter.prompts_list_changed == Some(true),
            "notifications/resources/list_changed" => &|filter| filter.resources_list_changed == Some(true),
            "notifications/resources/updated" => &|filter| filter.includes(params),
            _ => return false,
        };
        if params.is_some_and(|params| params.get().len() > MAX_LEN) {
            return true;
        }
        // The memory is released when the last copy is written. The mutex makes the guard `Sync`.
        let guard = Arc::new(std::sync::Mutex::new(guard));
        for subscription in
            self.0.iter().filter(|subscription| subscription.unconfirmed == 0 && wants(&subscription.filter))
        {
            outputs.send_to_client(
                Outgoing::line(subscription.notification(method, params)).holding(guard.clone()),
            );
        }
        true
    }

    /// Returns `true` if a subscription already follows the resource.
    fn is_followed(&self, uri: &str) -> bool {
        let uris =
            self.0.iter().filter_map(|subscription| subscription.filter.resource_subscriptions.as_ref());
        uris.flatten().any(|followed| followed == uri)
    }
}

impl Subscription {
    fn acknowledge(&self, outputs: &mut Outputs<'_>) {
        let params = to_raw_value(&json!({ "notifications": self.filter })).ok();
        let line = self.notification("notifications/subscriptions/acknowledged", params.as_deref());
        outputs.send_to_client(Outgoing::line(line));
    }

    /// Returns the notification line, marked with this subscription's id.
    fn notification(&self, method: &str, params: Option<&RawValue>) -> Vec<u8> {
        let id = RawValue::from_string(self.id.as_json().to_owned());
        let params = rewrite_params(params, |_, meta| {
            if let Ok(id) = id {
                meta.set(meta_key::SUBSCRIPTION_ID, id);
            }
        });
        notification_line(method, params.ok().as_deref())
    }
}

impl Filter {
    /// Returns `true` if the notification concerns a followed resource or a part of such a resource.
    fn includes(&self, params: Option<&RawValue>) -> bool {
        let uri = || {
            let params: Fields = serde_json::from_str(params?.get()).ok()?;
            serde_json::from_str::<String>(params.get("uri")?.get()).ok()
        };
        let Some(uri) = uri() else { return false };
        self.resource_subscriptions.iter().flatten().any(|followed| uri.starts_with(followed.as_str()))
    }
}

/// Returns the request to follow or unfollow a resource.
pub(super) fn request(id: &Id, method: &str, uri: &str) -> Vec<u8> {
    request_line(id, method, to_raw_value(&json!({ "uri": uri })).ok().as_deref())
}

fn id_value(id: &Id) -> serde_json::Value {
    serde_json::from_str(id.as_json()).unwrap_or_default()
}
