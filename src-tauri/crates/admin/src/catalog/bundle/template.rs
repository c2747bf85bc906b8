//! Creates the entry of a bundle's server by replacing the `${...}` placeholders in its command.

use super::super::untrusted_entry::mentions_secret;
use super::error::BundleError;
use super::manifest::BundleCommand;
use ironcurtain_secrets::secret_reference;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Values of the `${...}` placeholders in a bundle's command.
pub(super) struct CommandTemplate<'a> {
    pub(super) folder: &'a Path,
    pub(super) home: &'a Path,
    pub(super) values: BTreeMap<String, Vec<String>>,
}

impl CommandTemplate<'_> {
    pub(super) fn entry(&self, start: BundleCommand) -> Result<Map<String, Value>, BundleError> {
        let BundleCommand { command, args, mut env, mut platform_overrides } = start;
        let platform = platform_overrides.remove("linux").unwrap_or_default();
        env.extend(platform.env);
        let (command, args) = (platform.command.unwrap_or(command), platform.args.unwrap_or(args));
        let texts = env.iter().flat_map(|(key, value)| [key, value]).chain(&args).chain([&command]);
        texts.into_iter().try_for_each(|text| reject_secret_reference(text))?;
        let mut filled_args = Vec::new();
        for text in args {
            filled_args.extend(self.argument(&text)?);
        }
        let mut variables = Map::new();
        for (key, template) in env {
            let Some(text) = self.expand(&template)? else { continue };
            // A value may refer to a secret only if it consists of exactly one setting. In that case, the user entered
            // the value, or it names the bundle's own secret.
            if self.setting_values(&template).is_none() && secret_reference(&text) != Ok(None) {
                return Err(BundleError::ForeignSecret(text));
            }
            variables.insert(key, json!(text));
        }
        let command = self.expand(&command)?.unwrap_or_default();
        let fields =
            [("command", json!(command)), ("args", json!(filled_args)), ("env", Value::Object(variables))];
        Ok(fields.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
    }

    /// Returns the arguments for one template. A setting with several values becomes several arguments. An omitted
    /// setting adds no argument.
    fn argument(&self, text: &str) -> Result<Vec<String>, BundleError> {
        match self.setting_values(text) {
            Some(values) => Ok(values.clone()),
            None => Ok(self.expand(text)?.into_iter().collect()),
        }
    }

    /// Returns the values of a setting if the text is exactly its placeholder.
    fn setting_values(&self, text: &str) -> Option<&Vec<String>> {
        let key = text.strip_prefix("${user_config.")?.strip_suffix('}')?;
        self.values.get(key)
    }

    /// Replaces all placeholders in the text. Returns `None` if the text contains an omitted setting.
    fn expand(&self, text: &str) -> Result<Option<String>, BundleError> {
        let (mut expanded, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let (word, after) =
                after.split_once('}').ok_or_else(|| BundleError::Placeholder(text.to_owned()))?;
            expanded.push_str(before);
            match (word, word.strip_prefix("user_config.")) {
                ("__dirname", _) => expanded.push_str(&self.folder.display().to_string()),
                ("HOME", _) => expanded.push_str(&self.home.display().to_string()),
                ("/" | "pathSeparator", _) => expanded.push('/'),
                (_, Some(key)) => match self.values.get(key).map(Vec::as_slice) {
                    None | Some([]) => return Ok(None),
                    Some([value]) => expanded.push_str(value),
                    Some(several) => return Err(BundleError::SeveralValues(key.to_owned(), several.len())),
                },
                _ => return Err(BundleError::Placeholder(format!("${{{word}}}"))),
            }
            rest = after;
        }
        expanded.push_str(rest);
        Ok(Some(expanded))
    }
}

/// Returns an error if text from the bundle refers to one of the user's secrets.
pub(super) fn reject_secret_reference(text: &str) -> Result<(), BundleError> {
    if mentions_secret(text) { Err(BundleError::ForeignSecret(text.to_owned())) } else { Ok(()) }
}
