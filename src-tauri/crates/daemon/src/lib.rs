//! The trusted process: sessions, MCP mediation, consent, grants, roots and the audit log, on tokio.

pub mod consent;
