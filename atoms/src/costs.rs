//! Reads measured costs of atoms from a file. [`AtomTable::with_costs`] puts them in place of the
//! costs of an atom table. `carbyne atoms calibrate` writes such files; `costs/sm_90.json` is the
//! one for the tables of sm_90 and sm_90a.
//!
//! A file is one JSON object:
//! - `format`: 1.
//! - `architectures`: the architectures whose atoms were measured: `["sm_90", "sm_90a"]`.
//! - `device`, `driver`, `date`: the measured device, and when it was measured.
//! - `rows`: maps names of atoms to
//!   `{"issue_cycles": .., "completion_cycles": .., "instructions": ..}`. The first two numbers are
//!   those of [`Cost`](crate::Cost). `instructions` is the number of machine instructions of one
//!   execution; it is for readers only.
//!
//! Cycles are those of a multiprocessor's clock. `completion_cycles`: cycles per execution of one
//! warp that executes the atom on its own results. `issue_cycles`: cycles that each scheduler of a
//! multiprocessor full of such warps takes for one execution by one warp.

use crate::arch::Arch;
use crate::atom::Rate;
use crate::table::AtomTable;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

/// The contents of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// The architectures whose atoms were measured.
    pub architectures: Vec<Arch>,
    /// Issue and completion cycles, by name of the atom.
    pub atoms: BTreeMap<String, (f64, f64)>,
}

/// The errors of a file of costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostError {
    /// The text is not JSON, or a member is missing.
    Format(String),
    /// The file is for other architectures.
    Architecture(Arch),
    /// The table has no atom with this name.
    UnknownAtom(String),
    /// A number of cycles is out of range.
    Cycles(String),
}

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostError::Format(what) => write!(f, "not a file of costs: {what}"),
            CostError::Architecture(arch) => write!(f, "the file has no costs for {arch}"),
            CostError::UnknownAtom(atom) => write!(f, "the table has no atom `{}`", short(atom)),
            CostError::Cycles(atom) => {
                write!(f, "the cycles of `{}` are not numbers from 0.01 to 10^7", short(atom))
            }
        }
    }
}

impl std::error::Error for CostError {}

/// A name from a file, cut to a length for messages.
fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

/// The source of costs from a file.
const MEASURED: &str = "measured by `carbyne atoms calibrate`";

impl Costs {
    /// Parses the text of a file.
    pub fn read(text: &str) -> Result<Self, CostError> {
        let value: Value =
            serde_json::from_str(text).map_err(|e| CostError::Format(e.to_string()))?;
        let lacks = |what: &str| CostError::Format(format!("`{what}` is missing"));
        if value["format"] != 1 {
            return Err(CostError::Format("`format` is not 1".to_owned()));
        }
        let names = value["architectures"].as_array().ok_or_else(|| lacks("architectures"))?;
        let arch = |v: &Value| {
            let name = v.as_str().unwrap_or_default();
            name.parse::<Arch>().map_err(|e| CostError::Format(e.to_string()))
        };
        let architectures = names.iter().map(arch).collect::<Result<_, _>>()?;
        let mut atoms = BTreeMap::new();
        for (name, atom) in value["rows"].as_object().ok_or_else(|| lacks("rows"))? {
            let cycles = |member: &str| {
                let v = atom[member].as_f64();
                v.filter(|v| (0.01..=1e7).contains(v))
                    .ok_or_else(|| CostError::Cycles(name.clone()))
            };
            atoms.insert(name.clone(), (cycles("issue_cycles")?, cycles("completion_cycles")?));
        }
        Ok(Costs { architectures, atoms })
    }
}

impl AtomTable {
    /// The table with the costs of a file instead of its own.
    pub fn with_costs(mut self, costs: &Costs) -> Result<Self, CostError> {
        if !costs.architectures.contains(&self.arch) {
            return Err(CostError::Architecture(self.arch));
        }
        for (name, (issue, completion)) in &costs.atoms {
            let Some(atom) = self.atom_mut(name) else {
                return Err(CostError::UnknownAtom(name.clone()));
            };
            // The work is unchanged and takes another time. A result is never available before the
            // next atom is issued.
            let scale = atom.cost.issue_cycles / issue;
            atom.cost.per_sm_per_cycle = match atom.cost.per_sm_per_cycle {
                Rate::Bytes(v) => Rate::Bytes(v * scale),
                Rate::Ops(v) => Rate::Ops(v * scale),
            };
            atom.cost.issue_cycles = *issue;
            atom.cost.completion_cycles = completion.max(*issue);
            atom.cost.source = MEASURED;
        }
        Ok(self)
    }

    /// The table with the measured costs of its architecture, if this crate contains some.
    pub(crate) fn measured(self) -> Self {
        static SM_90: OnceLock<Option<Costs>> = OnceLock::new();
        let costs = SM_90.get_or_init(|| Costs::read(include_str!("../costs/sm_90.json")).ok());
        match costs {
            Some(costs) if costs.architectures.contains(&self.arch) => {
                // A test checks the file.
                self.clone().with_costs(costs).unwrap_or(self)
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_fits_its_tables() {
        let costs = Costs::read(include_str!("../costs/sm_90.json")).unwrap();
        assert_eq!(costs.architectures, [Arch::Sm90, Arch::Sm90a]);
        for arch in &costs.architectures {
            let table = AtomTable::new(*arch);
            assert_eq!(table.clone().with_costs(&costs).map(|t| t.arch), Ok(*arch));
            for (name, (issue, _)) in &costs.atoms {
                let cost = table.get(name).unwrap().cost;
                assert_eq!((cost.issue_cycles, cost.source), (*issue, MEASURED), "{name}");
            }
        }
    }

    /// The results of `carbyne atoms calibrate --machine` on a card agree with the tables and
    /// limits.
    #[test]
    fn warp_groups_multiply_as_fast_as_was_measured() {
        let file: Value =
            serde_json::from_str(include_str!("../costs/sm_90_machine.json")).unwrap();
        let parts = file["parts"].as_array().unwrap();
        let value = |name: &str| {
            let part = parts.iter().find(|p| p["name"] == name);
            part.unwrap_or_else(|| panic!("{name} was not measured"))["value"].as_f64().unwrap()
        };
        let table = AtomTable::new(Arch::Sm90a);
        for n in [8, 16, 32, 64, 96, 128, 160, 192, 224, 256] {
            for (place, short) in [("shared", "ss"), ("registers", "rs")] {
                let cost = table.get(&format!("wgmma.m64n{n}k16.f32.f16.{short}")).unwrap().cost;
                let own = value(&format!("wgmma m64n{n}k16 f16, first factor in {place}"));
                // Shapes of few columns have a floor that rates do not describe.
                let floor = if n < 64 { 16.0 } else { 0.0 };
                let said = cost.issue_cycles.max(floor);
                assert!((said / own - 1.0).abs() < 0.2, "{n} {place}: {said}, measured {own}");
            }
        }
        for n in [64, 128, 256] {
            let cost = table.get(&format!("wgmma.m64n{n}k16.f32.f16.ss")).unwrap().cost;
            let own = value(&format!("wgmma m64n{n}k16 f16 until its sums are there"));
            let said = cost.completion_cycles;
            assert!((said / own - 1.0).abs() < 0.05, "{n}: {said}, measured {own}");
        }
        let shared = crate::limits(Arch::Sm90a).smem_bytes_per_cycle() as f64;
        for name in ["ld.shared.b128", "st.shared.b32", "st.shared.b64", "st.shared.b128"] {
            assert!((value(name) / shared - 1.0).abs() < 0.05, "{name}");
        }
        let sums = crate::limits(Arch::Sm90a).timing.red_bytes;
        for n in [1, 2, 4] {
            let own = value(&format!("sums of {n} f32 a thread in L2"));
            assert!((sums / own - 1.0).abs() < 0.1, "{n}: {sums}, measured {own}");
        }
    }

    #[test]
    fn costs_replace_those_of_a_table() {
        let text = r#"{"format": 1, "architectures": ["sm_80"],
            "rows": {"add.f32": {"issue_cycles": 4.0, "completion_cycles": 3.0}}}"#;
        let costs = Costs::read(text).unwrap();
        let table = AtomTable::new(Arch::Sm80);
        let old = table.get("add.f32").unwrap().cost;
        let new = table.with_costs(&costs).unwrap().get("add.f32").unwrap().cost;
        assert_eq!((new.issue_cycles, new.completion_cycles), (4.0, 4.0));
        let (Rate::Ops(a), Rate::Ops(b)) = (old.per_sm_per_cycle, new.per_sm_per_cycle) else {
            panic!("{old:?}")
        };
        assert!((a * old.issue_cycles - b * new.issue_cycles).abs() < 1e-9);
        let other = AtomTable::new(Arch::Sm70).with_costs(&costs).unwrap_err();
        assert_eq!(other, CostError::Architecture(Arch::Sm70));
    }

    #[test]
    fn a_text_that_is_not_a_file_of_costs_is_refused() {
        let atom = |issue: &str| {
            format!(
                "{{\"format\":1,\"architectures\":[],\"rows\":{{\"x\":{{\"issue_cycles\":{issue},\
                 \"completion_cycles\":1}}}}}}"
            )
        };
        assert!(Costs::read(&atom("1.5")).is_ok());
        for issue in ["0", "-1", "1e300", "null", "\"1\""] {
            assert_eq!(
                Costs::read(&atom(issue)),
                Err(CostError::Cycles("x".to_owned())),
                "{issue}"
            );
        }
        for text in
            ["", "[]", "{}", "{\"format\":2}", "{\"format\":1,\"architectures\":[\"sm_1\"]}"]
        {
            assert!(matches!(Costs::read(text), Err(CostError::Format(_))), "{text}");
        }
        let unknown =
            Costs { architectures: vec![Arch::Sm80], atoms: [("x".to_owned(), (1.0, 1.0))].into() };
        let refused = AtomTable::new(Arch::Sm80).with_costs(&unknown).unwrap_err();
        assert_eq!(refused.to_string(), "the table has no atom `x`");
    }
}
