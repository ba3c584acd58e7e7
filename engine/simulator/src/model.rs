//! A model: parameters with a name, from a TOML file, adjustable by name.

use crate::parameters::Parameters;
use crate::quantity::Dimension;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// The models that come with the project: a name and the text of its file.
const BUILTIN: &[(&str, &str)] = &[
    ("enterprise-mixed", include_str!("../models/enterprise-mixed.toml")),
    ("enterprise-read", include_str!("../models/enterprise-read.toml")),
    ("consumer-highend", include_str!("../models/consumer-highend.toml")),
    ("consumer-dramless", include_str!("../models/consumer-dramless.toml")),
    ("consumer-dramless-small-slc", include_str!("../models/consumer-dramless-small-slc.toml")),
    ("consumer-qlc", include_str!("../models/consumer-qlc.toml")),
    ("consumer-mlc", include_str!("../models/consumer-mlc.toml")),
    ("xpoint", include_str!("../models/xpoint.toml")),
    ("sata-compressing", include_str!("../models/sata-compressing.toml")),
    ("sata", include_str!("../models/sata.toml")),
];

/// Why there is no such model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No built-in model has this name.
    #[error("there is no modelled drive '{name}'; there are {known}")]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// All that there are.
        known: String,
    },
    /// The text of a model is not what a model is.
    #[error("the model cannot be read: {message}")]
    Malformed {
        /// Where and why.
        message: String,
    },
    /// No parameter has this name.
    #[error("there is no parameter '{key}' of a modelled drive; there are {known}")]
    UnknownParameter {
        /// What was asked for.
        key: String,
        /// All that there are.
        known: String,
    },
    /// A parameter cannot be this.
    #[error("parameter '{key}' of a modelled drive cannot be '{value}'; give {expected}")]
    BadValue {
        /// The parameter.
        key: String,
        /// What it was to be.
        value: String,
        /// What it can be.
        expected: String,
    },
}

/// What drives of the model's class do, which the model as it is built is held against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Commands in flight for the figures of random I/O.
    pub random_depth: u32,
    /// Over how many bytes, from the first on, random I/O goes for these figures; all of the drive where it is absent.
    #[serde(default)]
    pub random_span_bytes: Option<u64>,
    /// What of the data written for these figures is left once it is compressed: all of it where it is absent.
    #[serde(default)]
    pub stored_share: Option<f64>,
    /// Random reads of 4 KiB a second.
    pub random_read_iops: f64,
    /// Random writes of 4 KiB a second that the drive sustains.
    pub random_write_iops: f64,
    /// Sequential reads of 128 KiB.
    pub sequential_read_bytes_per_s: f64,
    /// Sequential writes of 128 KiB on a drive that was empty.
    pub sequential_write_bytes_per_s: f64,
}

/// A modelled drive as it is before it exists: what it is called, what it is and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    name: String,
    description: String,
    figures: Option<Figures>,
    parameters: Parameters,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    name: String,
    description: String,
    figures: Option<Figures>,
    parameters: Parameters,
}

impl Model {
    /// The names of the models that come with the project.
    pub fn builtin_names() -> impl ExactSizeIterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// The built-in model of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn builtin(name: &str) -> Result<Model, ModelError> {
        let Some((_, text)) = BUILTIN.iter().find(|(known, _)| *known == name) else {
            let known = Model::builtin_names().collect::<Vec<_>>().join(", ");
            return Err(ModelError::UnknownModel { name: name.into(), known });
        };
        Model::from_toml(text)
    }

    /// A model of the text of a model file.
    ///
    /// # Errors
    /// When the text is not TOML, a key is missing or unknown, or a value makes no sense.
    pub fn from_toml(text: &str) -> Result<Model, ModelError> {
        let file: ModelFile =
            toml::from_str(text).map_err(|error| ModelError::Malformed { message: error.to_string() })?;
        let ModelFile { name, description, figures, parameters } = file;
        check(&parameters)?;
        Ok(Model { name, description, figures, parameters })
    }

    /// What the model is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the model is, in a sentence.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// What the model was held against; of the model as it was built, whatever was set since.
    pub fn figures(&self) -> Option<&Figures> {
        self.figures.as_ref()
    }

    /// Every parameter, as set.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The names of all parameters.
    pub fn parameter_names(&self) -> Vec<String> {
        self.parameter_table().keys().cloned().collect()
    }

    /// Sets one parameter, by its name: `set("capacity_bytes", "68719476736")`. Where the name ends in a unit it can be left
    /// out, and the value then says the unit: `set("capacity", "64GiB")`, `set("trim_per_page", "0.7us")`.
    ///
    /// # Errors
    /// When there is no such parameter or the value makes no sense: the model is then as before.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ModelError> {
        self.set_all([(key, value)])
    }

    /// Sets parameters as [`Model::set`] does. Only the result as a whole must make sense, not each step.
    ///
    /// # Errors
    /// When there is no such parameter or a value makes no sense: the model is then as before.
    pub fn set_all<'a>(
        &mut self,
        overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), ModelError> {
        let mut parameters = self.parameters.clone();
        for (key, value) in overrides {
            parameters = with_override(&parameters, key, value)?;
        }
        check(&parameters)?;
        self.parameters = parameters;
        Ok(())
    }

    /// In which way another model is not this one: another name or, of the parameters, those that have another value there. Faults,
    /// which belong to a run, make no difference.
    pub(crate) fn difference(&self, other: &Model) -> Option<String> {
        if self.name != other.name {
            return Some(format!("it is of the model '{}', not of '{}'", self.name, other.name));
        }
        let (own, others) = (self.parameter_table(), other.parameter_table());
        let is_of_the_run = |name: &str| name.starts_with("fault_") || name == "keep_contents";
        let differs = |name: &&String| !is_of_the_run(name) && own[*name] != others[*name];
        let settings = |table: &Table| {
            let pairs = own.keys().filter(differs).map(|name| format!("{name}={}", plain(&table[name])));
            pairs.collect::<Vec<_>>().join(", ")
        };
        let there = settings(&own);
        (!there.is_empty()).then(|| format!("it is of a drive with {there}, not with {}", settings(&others)))
    }

    fn parameter_table(&self) -> Table {
        table_of(&self.parameters)
    }
}

/// A value as it is written in a URI.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// Names that people use beside those of the parameters.
const SHORT_NAMES: &[(&str, &str)] = &[("op", "over_provisioning")];

fn table_of(parameters: &Parameters) -> Table {
    Table::try_from(parameters).expect("numbers that came from TOML go into TOML")
}

/// The parameters with one of them changed; not yet checked.
fn with_override(parameters: &Parameters, key: &str, text: &str) -> Result<Parameters, ModelError> {
    let mut table = table_of(parameters);
    let long = SHORT_NAMES.iter().find(|(short, _)| *short == key).map_or(key, |(_, name)| name);
    let known_as = |name: &&String| {
        name.as_str() == long || Dimension::of(name.as_str()).is_some_and(|(_, short)| short == key)
    };
    let Some(name) = table.keys().find(known_as).cloned() else {
        let known = table.keys().cloned().collect::<Vec<_>>().join(", ");
        return Err(ModelError::UnknownParameter { key: key.into(), known });
    };
    let bad = |expected: String| ModelError::BadValue { key: key.into(), value: text.into(), expected };
    let value = match (&table[&name], Dimension::of(&name)) {
        // Only the full name says the unit of a bare number.
        (_, Some((dimension, short))) => dimension
            .parse(text)
            .or_else(|| text.parse().ok().filter(|_| key != short))
            .map(Value::Integer)
            .ok_or_else(|| bad(format!("a number with one of the units {}", dimension.examples())))?,
        (Value::Integer(_), None) => {
            text.parse().map(Value::Integer).map_err(|_| bad("a whole number".into()))?
        }
        (Value::Float(_), None) => {
            number_or_percent(text).map(Value::Float).ok_or_else(|| bad("a number".into()))?
        }
        (Value::Boolean(_), None) => {
            text.parse().map(Value::Boolean).map_err(|_| bad("true or false".into()))?
        }
        _ => Value::String(text.into()),
    };
    table.insert(name, value);
    // What remains to go wrong is a word that is none of a choice, or a number outside its type.
    table.try_into().map_err(|error: toml::de::Error| bad(format!("another value: {}", error.message())))
}

/// `0.28` or `28%`.
fn number_or_percent(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse().ok(),
    }
}

fn check(parameters: &Parameters) -> Result<(), ModelError> {
    let Some((name, expected)) = parameters.fault() else { return Ok(()) };
    let value = table_of(parameters)[name].to_string();
    Err(ModelError::BadValue { key: name.into(), value, expected })
}
