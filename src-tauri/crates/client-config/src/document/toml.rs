//! Settings files in TOML.

use super::{DocumentError, line_of};
use serde_json::{Map, Value, json};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

pub(crate) struct TomlDocument {
    tree: DocumentMut,
}

impl TomlDocument {
    pub(crate) fn parse(text: &str) -> Result<Self, DocumentError> {
        let tree = text.parse::<DocumentMut>().map_err(|problem| DocumentError::Syntax {
            line: line_of(text, problem.span().map_or(0, |span| span.start)),
            problem: problem.message().to_owned(),
        })?;
        Ok(Self { tree })
    }

    pub(crate) fn entries(&self, keys: &[&str]) -> Result<Vec<(String, Value)>, DocumentError> {
        let mut table: &dyn TableLike = self.tree.as_table();
        for key in keys {
            let Some(item) = table.get(key) else { return Ok(Vec::new()) };
            table = item.as_table_like().ok_or_else(|| DocumentError::NoEntries((*key).to_owned()))?;
        }
        let unsupported = |name: &str| DocumentError::UnsupportedLayout(name.to_owned());
        let entry = |(name, item)| Ok((str::to_owned(name), read(item).ok_or_else(|| unsupported(name))?));
        table.iter().map(entry).collect()
    }

    pub(crate) fn set(&mut self, keys: &[&str], name: &str, value: &Value) -> Result<(), DocumentError> {
        let Value::Object(members) = value else {
            return Err(DocumentError::UnsupportedLayout(name.to_owned()));
        };
        let mut table: &mut dyn TableLike = self.tree.as_table_mut();
        for key in keys {
            let missing = || {
                let mut table = Table::new();
                // Each entry has its own header, so this table needs no header.
                table.set_implicit(true);
                Item::Table(table)
            };
            table = table
                .entry(key)
                .or_insert_with(missing)
                .as_table_like_mut()
                .ok_or_else(|| DocumentError::NoEntries((*key).to_owned()))?;
        }
        match table.get_mut(name) {
            // Editing the entry in place keeps its comments and position.
            Some(old) => {
                let old = old
                    .as_table_like_mut()
                    .ok_or_else(|| DocumentError::UnsupportedLayout(name.to_owned()))?;
                let removed_keys: Vec<String> = old
                    .iter()
                    .map(|(key, _)| key.to_owned())
                    .filter(|key| !members.contains_key(key))
                    .collect();
                removed_keys.iter().for_each(|key| drop(old.remove(key)));
                for (key, member) in members {
                    if old.get(key).and_then(read).as_ref() != Some(member) {
                        old.insert(
                            key,
                            Item::Value(
                                to_format_value(member)
                                    .ok_or_else(|| DocumentError::UnsupportedLayout(name.to_owned()))?,
                            ),
                        );
                    }
                }
            }
            None => {
                let mut entry = Table::new();
                for (key, member) in members {
                    entry.insert(
                        key,
                        Item::Value(
                            to_format_value(member)
                                .ok_or_else(|| DocumentError::UnsupportedLayout(name.to_owned()))?,
                        ),
                    );
                }
                table.insert(name, Item::Table(entry));
            }
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, keys: &[&str], name: &str) -> Result<(), DocumentError> {
        let mut table: &mut dyn TableLike = self.tree.as_table_mut();
        for key in keys {
            let Some(item) = table.get_mut(key) else { return Ok(()) };
            table = item.as_table_like_mut().ok_or_else(|| DocumentError::NoEntries((*key).to_owned()))?;
        }
        table.remove(name);
        Ok(())
    }

    pub(crate) fn text(&self) -> String {
        self.tree.to_string()
    }
}

/// Converts an item to JSON; `None` if JSON cannot represent it.
fn read(item: &Item) -> Option<Value> {
    match item {
        Item::None => None,
        Item::Value(value) => read_value(value),
        Item::Table(table) => read_table(table),
        Item::ArrayOfTables(tables) => {
            tables.iter().map(|table| read_table(table)).collect::<Option<_>>().map(Value::Array)
        }
    }
}

fn read_value(value: &toml_edit::Value) -> Option<Value> {
    Some(match value {
        toml_edit::Value::String(text) => json!(text.value()),
        toml_edit::Value::Integer(number) => json!(number.value()),
        toml_edit::Value::Float(number) => json!(number.value()),
        toml_edit::Value::Boolean(flag) => json!(flag.value()),
        toml_edit::Value::Datetime(time) => json!(time.value().to_string()),
        toml_edit::Value::Array(items) => Value::Array(items.iter().map(read_value).collect::<Option<_>>()?),
        toml_edit::Value::InlineTable(table) => read_table(table)?,
    })
}

fn read_table(table: &dyn TableLike) -> Option<Value> {
    let members = table.iter().map(|(key, item)| Some((key.to_owned(), read(item)?)));
    members.collect::<Option<Map<_, _>>>().map(Value::Object)
}

/// Converts a value to TOML; `None` if TOML cannot represent it.
fn to_format_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(to_format_value).collect::<Option<Array>>()?.into(),
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (key, member) in members {
                table.insert(key, to_format_value(member)?);
            }
            table.into()
        }
    })
}
