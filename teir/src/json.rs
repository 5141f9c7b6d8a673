//! Reads an operation of TEIR (the Tiled Execution IR) from JSON: an object of `schedule` and
//! `primitives`, with the fields of the specification. Each field must be there once, and no
//! others. The error lists the wrong fields, at most 100 of them. `record` writes the JSON.

use crate::record::{Operation, Primitives, Schedule};
use crate::text::{NUMBER, admitted, kept};
use crate::violation::{Code, Field, MAX_VIOLATIONS, Place, Violation, Violations, quoted};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// An object, or any other JSON.
#[derive(Deserialize)]
#[serde(untagged, bound = "V: Deserialize<'de>")]
enum Json<V> {
    /// Fields as they are written, also those that are written twice.
    Object(#[serde(deserialize_with = "entries")] Vec<(String, V)>),
    Other(Value),
}

/// The fields of an object.
fn entries<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<(String, V)>, D::Error> {
    struct Fields<V>(PhantomData<V>);
    impl<'de, V: Deserialize<'de>> Visitor<'de> for Fields<V> {
        type Value = Vec<(String, V)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = vec![];
            while let Some(entry) = map.next_entry()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }
    deserializer.deserialize_map(Fields(PhantomData))
}

/// Violations of what is read.
#[derive(Default)]
struct Reader {
    wrong: Vec<Violation>,
}

fn unreadable(place: Place, found: impl Into<String>, wanted: &str, help: String) -> Violation {
    Violation::new(Code::Syntax, place, found, wanted, help)
}

/// A short text of a value, for messages.
fn described(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(word) => quoted(word),
        other => quoted(&other.to_string()),
    }
}

impl Reader {
    /// The values of these fields, each of which an object has once, and no others.
    fn fields<'a, V, const N: usize>(
        &mut self,
        value: &'a Json<V>,
        name: &str,
        names: [(&str, Place); N],
    ) -> [Option<&'a V>; N] {
        let list = names.map(|(name, _)| format!("`{name}`")).join(", ");
        let entries = match value {
            Json::Object(entries) => entries,
            Json::Other(value) => {
                let found = format!("{} for {name}", described(value));
                let wanted = format!("an object of {list}");
                let help = format!("write {wanted}");
                self.wrong.push(unreadable(Place::Operation, found, &wanted, help));
                return [None; N];
            }
        };
        for (i, (field, _)) in entries.iter().enumerate() {
            let known = names.iter().find(|(name, _)| name == field);
            let (found, wanted) = match known {
                None => (format!("{} in {name}", quoted(field)), format!("no fields but {list}")),
                Some(_) if entries[..i].iter().any(|(earlier, _)| earlier == field) => {
                    ("a second one".to_owned(), "each field once".to_owned())
                }
                Some(_) => continue,
            };
            if self.wrong.len() >= MAX_VIOLATIONS {
                break;
            }
            let place = known.map_or(Place::Operation, |(_, place)| *place);
            self.wrong.push(unreadable(place, found, &wanted, "remove the field".to_owned()));
        }
        names.map(|(field, place)| {
            let found = entries.iter().find(|(name, _)| name == field);
            if found.is_none() {
                let (found, help) = (format!("no `{field}`"), format!("add `{field}` to {name}"));
                self.wrong.push(unreadable(place, found, "each field of TEIR", help));
            }
            found.map(|(_, value)| value)
        })
    }

    /// The entries of a vector.
    fn vector<T>(
        &mut self,
        value: Option<&Value>,
        field: Field,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Vec<T> {
        let Some(value) = value else { return vec![] };
        let Value::Array(entries) = value else {
            let (place, wanted) = (Place::Field(field), "a list with an entry for each axis");
            self.wrong.push(unreadable(place, described(value), wanted, format!("write {wanted}")));
            return vec![];
        };
        let mut all = vec![];
        for (i, entry) in entries.iter().enumerate() {
            match read(entry) {
                Ok(entry) => all.push(entry),
                Err(_) if self.wrong.len() >= MAX_VIOLATIONS => {}
                Err(wanted) => {
                    let found = described(entry);
                    let (place, help) = (Place::Axis(i, field), format!("write {wanted}"));
                    self.wrong.push(unreadable(place, found, &wanted, help));
                }
            }
        }
        all
    }

    /// A primitive.
    fn primitive<T: FromStr<Err = String>>(
        &mut self,
        value: Option<&Value>,
        field: Field,
    ) -> Option<T> {
        let value = value?;
        let read = word(value).map_err(|wanted| {
            let help = format!("write {wanted}");
            unreadable(Place::Field(field), described(value), &wanted, help)
        });
        kept(read, &mut self.wrong)
    }

    fn schedule(&mut self, value: &Json<Value>) -> Schedule {
        let fields = [
            Field::DimTypes,
            Field::ExecTypes,
            Field::DimSizes,
            Field::StridesIn0,
            Field::StridesIn1,
            Field::StridesOut,
        ];
        let names = fields.map(|field| (field.as_str(), Place::Field(field)));
        let [dims, execs, sizes, in0, in1, out] = self.fields(value, "schedule", names);
        Schedule {
            dim_types: self.vector(dims, Field::DimTypes, word),
            exec_types: self.vector(execs, Field::ExecTypes, word),
            dim_sizes: self.vector(sizes, Field::DimSizes, number),
            strides_in0: self.vector(in0, Field::StridesIn0, number),
            strides_in1: self.vector(in1, Field::StridesIn1, number),
            strides_out: self.vector(out, Field::StridesOut, number),
        }
    }

    fn primitives(&mut self, value: &Json<Value>) -> Option<Primitives> {
        let fields = [Field::DataType, Field::PrimFirst, Field::PrimMain, Field::PrimLast];
        let names = fields.map(|field| (field.as_str(), Place::Field(field)));
        let [data_type, first, main, last] = self.fields(value, "primitives", names);
        let data_type = self.primitive(data_type, Field::DataType);
        let prim_first = self.primitive(first, Field::PrimFirst);
        let prim_main = self.primitive(main, Field::PrimMain);
        let prim_last = self.primitive(last, Field::PrimLast);
        Some(Primitives {
            data_type: data_type?,
            prim_first: prim_first?,
            prim_main: prim_main?,
            prim_last: prim_last?,
        })
    }
}

/// A name of the specification, or a list of all names.
fn word<T: FromStr<Err = String>>(value: &Value) -> Result<T, String> {
    value.as_str().unwrap_or_default().parse()
}

fn number(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| NUMBER.to_owned())
}

impl Operation {
    /// Reads JSON: an object of `schedule` and `primitives`, with the fields of the specification.
    ///
    /// # Errors
    /// `TEIR01` for JSON that is no operation.
    pub fn from_json(json: &str) -> Result<Self, Violations> {
        let json: Json<Json<Value>> = serde_json::from_str(admitted(json)?).map_err(|e| {
            let wanted = "an object of `schedule` and `primitives`, with the fields of TEIR";
            let help = "write JSON as the README of carbyne-teir shows it";
            Violation::new(Code::Syntax, Place::Line(e.line()), e.to_string(), wanted, help)
        })?;
        let mut reader = Reader::default();
        let names = ["schedule", "primitives"].map(|name| (name, Place::Operation));
        let [schedule, primitives] = reader.fields(&json, "an operation", names);
        let schedule = schedule.map(|value| reader.schedule(value));
        let primitives = primitives.and_then(|value| reader.primitives(value));
        match (schedule, primitives) {
            (Some(schedule), Some(primitives)) if reader.wrong.is_empty() => {
                Ok(Operation { schedule, primitives })
            }
            _ => {
                reader.wrong.truncate(MAX_VIOLATIONS);
                Err(Violations(reader.wrong))
            }
        }
    }
}
