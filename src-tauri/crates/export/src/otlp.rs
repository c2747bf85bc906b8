//! OTLP messages for events, and their JSON form for the user.

use crate::event::{Attribute, ExportedEvent, Severity};
use crate::names;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::metrics::v1::{Metric, ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use serde_json::{Map, Value, json};

/// Name of the program and of the instrumentation scope.
const PROGRAM: &str = "ironcurtain";

const NANOS_PER_MS: u64 = 1_000_000;

/// Returns the request that sends these events. `instance` is the device's public key.
pub(crate) fn logs(events: &[ExportedEvent], instance: &str) -> ExportLogsServiceRequest {
    let scope_logs = ScopeLogs {
        scope: Some(scope()),
        log_records: events.iter().map(record).collect(),
        ..ScopeLogs::default()
    };
    let logs = ResourceLogs {
        resource: Some(resource(instance)),
        scope_logs: vec![scope_logs],
        ..ResourceLogs::default()
    };
    ExportLogsServiceRequest { resource_logs: vec![logs] }
}

/// Returns the request that sends these metrics.
pub(crate) fn metrics(metrics: Vec<Metric>, instance: &str) -> ExportMetricsServiceRequest {
    let scope_metrics = ScopeMetrics { scope: Some(scope()), metrics, ..ScopeMetrics::default() };
    let metrics = ResourceMetrics {
        resource: Some(resource(instance)),
        scope_metrics: vec![scope_metrics],
        ..ResourceMetrics::default()
    };
    ExportMetricsServiceRequest { resource_metrics: vec![metrics] }
}

/// Returns an event as JSON, with exactly the content that is sent.
#[must_use]
pub fn sample(event: &ExportedEvent) -> Value {
    json!({
        "event": event.name,
        "timeUnixMs": event.time_ms,
        "severity": severity(event.severity).1,
        "body": event.body,
        "attributes": attributes_as_json(event),
    })
}

pub(crate) fn attributes_as_json(event: &ExportedEvent) -> Map<String, Value> {
    let value = |attribute: &Attribute| match attribute {
        Attribute::Text(text) => Value::from(text.as_str()),
        Attribute::Number(number) => Value::from(*number),
        Attribute::Flag(on) => Value::from(*on),
        Attribute::List(items) => Value::from(items.clone()),
    };
    event.attributes.iter().map(|(name, attribute)| ((*name).to_owned(), value(attribute))).collect()
}

fn record(event: &ExportedEvent) -> LogRecord {
    let (number, text) = severity(event.severity);
    let time = event.time_ms.saturating_mul(NANOS_PER_MS);
    LogRecord {
        time_unix_nano: time,
        observed_time_unix_nano: time,
        severity_number: number.into(),
        severity_text: text.to_owned(),
        body: Some(any_value(Any::StringValue(event.body.clone()))),
        attributes: event
            .attributes
            .iter()
            .map(|(name, value)| attribute_pair(name, attribute(value)))
            .collect(),
        event_name: event.name.clone(),
        ..LogRecord::default()
    }
}

fn severity(severity: Severity) -> (SeverityNumber, &'static str) {
    match severity {
        Severity::Info => (SeverityNumber::Info, "INFO"),
        Severity::Warning => (SeverityNumber::Warn, "WARN"),
    }
}

fn attribute(attribute: &Attribute) -> Any {
    match attribute {
        Attribute::Text(text) => Any::StringValue(text.clone()),
        Attribute::Number(number) => Any::IntValue(*number),
        Attribute::Flag(on) => Any::BoolValue(*on),
        Attribute::List(items) => {
            let values = items.iter().map(|item| any_value(Any::StringValue(item.clone()))).collect();
            Any::ArrayValue(ArrayValue { values })
        }
    }
}

fn resource(instance: &str) -> Resource {
    let attributes = [
        (names::SERVICE, PROGRAM),
        (names::SERVICE_VERSION, env!("CARGO_PKG_VERSION")),
        (names::INSTANCE, instance),
    ];
    Resource { attributes: string_attributes(&attributes), ..Resource::default() }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: PROGRAM.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

/// Returns attributes with text values.
pub(crate) fn string_attributes(pairs: &[(&str, &str)]) -> Vec<KeyValue> {
    pairs.iter().map(|(name, value)| attribute_pair(name, Any::StringValue((*value).to_owned()))).collect()
}

fn attribute_pair(name: &str, value: Any) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(any_value(value)), ..KeyValue::default() }
}

fn any_value(value: Any) -> AnyValue {
    AnyValue { value: Some(value) }
}
