//! Lowers atoms whose text is PTX to `asm` statements of C++: the operands of the spec become the
//! operands `%0`, `%1`, .. of the statement.
//!
//! A register operand becomes several operands, one for each register, in the order of its values.
//! The atom states the kind of register: 16, 32 or 64 bits, f32 or f64. A 32-bit register packs
//! adjacent narrower values. An operand in memory becomes one register with the thread's address
//! (32-bit in shared memory, 64-bit in global memory), or, for a tile that `wgmma` reads, with its
//! matrix descriptor (`descriptor`). Callers pass other registers, such as the addresses and tensor
//! maps of bulk copies (`bulk`). Numbers become immediates or registers.

use super::access::Values;
use super::helper::Helper;
use super::leaf::{Filled, named, number};
use super::state::Lowering;
use crate::cpp::ast::{Asm, Expr, Stmt, StmtKind, Type};
use crate::{Fallible, errors};
use carbyne_atoms::{AsmClass, Atom, AtomOperand, NumberForm, OperandAccess, Part, Template};
use carbyne_ir::expr::Dim;
use carbyne_ir::scalar::Memory;
use std::collections::HashMap;

impl Lowering<'_> {
    /// The instruction with its operands and numbers. `given` contains further registers by their
    /// names in the template. `accumulates` states whether a MatMul adds to D.
    pub(super) fn ptx(
        &mut self,
        atom: &Atom,
        filled: &[Filled],
        numbers: &[(&'static str, Dim)],
        given: Vec<(&'static str, (String, Expr))>,
        accumulates: bool,
    ) -> Fallible<Stmt> {
        let mut registers: HashMap<&str, Vec<(String, Expr)>> =
            given.into_iter().map(|(name, register)| (name, vec![register])).collect();
        let mut texts: HashMap<&str, String> = HashMap::new();
        for &(name, value) in numbers {
            match (atom.number(name).map(|n| n.form), value) {
                (Some(NumberForm::Immediate | NumberForm::Either(_)), Dim::Const(v)) => {
                    texts.insert(name, v.to_string());
                }
                (Some(NumberForm::Register(class) | NumberForm::Either(class)), _) => {
                    registers.insert(name, vec![self.number_register(value, class)?]);
                }
                _ => {
                    return Err(errors::unprintable(
                        format!("`{name}` of `{}` is not a constant", atom.name),
                        "write a number or a `let` constant",
                    ));
                }
            }
        }
        let mut placeholders = atom.template.placeholders();
        placeholders.retain(|name| !texts.contains_key(name));
        for &name in &placeholders {
            if registers.contains_key(name) {
                continue;
            }
            let (operand, value) = named(atom, filled, name)?;
            registers.insert(operand.name, self.operand_registers(atom, operand, value)?);
        }
        let numbered = Numbered::new(atom, &placeholders, registers, texts);
        let text = numbered.text(atom, filled, accumulates)?;
        // Accesses to memory must not move past an atom that orders them.
        let memory = atom.touches_memory() || atom.op.spec_kind().is_none();
        let Numbered { outputs, inputs, .. } = numbered;
        Ok(Stmt::new(StmtKind::Asm(Asm { text, outputs, inputs, memory })))
    }

    /// The register that holds a number.
    fn number_register(&mut self, value: Dim, class: AsmClass) -> Fallible<(String, Expr)> {
        let printed = self.indices.print(value)?;
        let mut value = printed.expr;
        // Coordinates of boxes have 32 bits; the launch rejects larger tensors.
        if class != AsmClass::R {
            value = Expr::Cast(Type::named(class.cxx()), Box::new(value));
        } else if printed.wide {
            value = Expr::Cast(Type::named("int"), Box::new(value));
        }
        Ok((class.letter().to_string(), value))
    }

    /// The registers that hold an operand, its address or its descriptor.
    fn operand_registers(
        &mut self,
        atom: &Atom,
        operand: &AtomOperand,
        value: &Filled,
    ) -> Fallible<Vec<(String, Expr)>> {
        Ok(match value {
            Filled::Values(v) if v.stored.memory.is_per_thread() => {
                self.registers_of(v, operand)?
            }
            Filled::Values(v) if atom.visibility.is_async_copy() => match self.by_pointer(v)? {
                Some(address) => vec![("l".to_owned(), address)],
                None => vec![self.address_register(v, true)?],
            },
            Filled::Values(v) => {
                let loads = atom.visibility.is_immediate() && operand.access == OperandAccess::Read;
                vec![self.address_register(v, loads)?]
            }
            Filled::Described(d) => {
                let class = operand.asm_class().letter().to_string();
                vec![(class, self.descriptor_of(d)?)]
            }
            Filled::Number(n) if matches!(operand.asm_class(), AsmClass::F | AsmClass::D) => {
                vec![(operand.asm_class().letter().to_string(), number(*n, operand)?)]
            }
            Filled::Number(_) => {
                return Err(errors::unprintable(
                    format!("operand {} of `{}` cannot be a literal", operand.name, atom.name),
                    "set a register with Init, and use the register",
                ));
            }
        })
    }

    fn registers_of(&mut self, v: &Values, o: &AtomOperand) -> Fallible<Vec<(String, Expr)>> {
        let class = o.asm_class();
        let bits = v.stored.scalar.bits();
        let per = class.bits() / bits;
        if per < 1 || v.at.len() as i64 % per != 0 {
            return Err(errors::unprintable(
                format!(
                    "{} values of {} do not fill registers of {} bits",
                    v.at.len(),
                    v.text,
                    class.bits()
                ),
                "give each thread values that fill whole registers",
            ));
        }
        let constraint = |letter: char| match o.access {
            OperandAccess::Read => letter.to_string(),
            OperandAccess::Write => format!("={letter}"),
            OperandAccess::ReadWrite => format!("+{letter}"),
        };
        let mut out = vec![];
        for from in (0..v.at.len()).step_by(per as usize) {
            let e = self.register(v, class, v.at[from], per)?;
            out.push((constraint(class.letter()), e));
        }
        Ok(out)
    }

    /// The register that begins with the scalar at `offset`.
    fn register(&mut self, v: &Values, class: AsmClass, offset: Dim, per: i64) -> Fallible<Expr> {
        if v.stored.storage.cxx == class.cxx() {
            return self.element(&v.stored, offset);
        }
        let Some((_, name)) = v.stored.words.iter().find(|(c, _)| *c == class) else {
            return Err(errors::unprintable(
                format!("{} cannot be accessed as {}", v.text, class.cxx()),
                "move the values to registers of their own first",
            ));
        };
        let name = name.clone();
        let index = self.p.arena.div(offset, Dim::Const(per)).map_err(errors::layout)?;
        Ok(Expr::name(name).at(self.index(index)?))
    }

    /// The register that holds the address of the first value. In shared memory, this is the
    /// address of an element, or a `pointer` for data that threads copy or load in loops: compilers
    /// keep a pointer that a loop advances in a register of its own.
    pub(super) fn address_register(
        &mut self,
        v: &Values,
        pointer: bool,
    ) -> Fallible<(String, Expr)> {
        let Some(&first) = v.at.first() else {
            return Err(errors::valueless(&v.text));
        };
        Ok(match v.stored.memory {
            Memory::Sh if pointer => {
                self.helpers.insert(Helper::SharedAddress);
                let address = self.address(&v.stored, first)?;
                ("r".to_owned(), Expr::call("shared_address", [address]))
            }
            Memory::Sh => ("r".to_owned(), self.shared_address(&v.stored, first)?),
            Memory::Gl | Memory::Rf | Memory::Ix | Memory::Pm => {
                ("l".to_owned(), self.address(&v.stored, first)?)
            }
        })
    }
}

/// The numbered operands of an asm statement.
#[derive(Default)]
struct Numbered<'a> {
    outputs: Vec<(String, Expr)>,
    inputs: Vec<(String, Expr)>,
    /// The text of each name of the template.
    texts: HashMap<&'a str, String>,
    /// The individual registers of each name.
    single: HashMap<&'a str, Vec<String>>,
}

impl<'a> Numbered<'a> {
    fn new(
        atom: &Atom,
        placeholders: &[&'a str],
        mut registers: HashMap<&'a str, Vec<(String, Expr)>>,
        texts: HashMap<&'a str, String>,
    ) -> Self {
        let mut all = Numbered { texts, ..Numbered::default() };
        let braces = !matches!(atom.template, Template::PtxScalar(_));
        // Outputs are numbered first, as required by C++.
        let mut number = 0;
        for outputs in [true, false] {
            for &name in placeholders {
                let operand = atom.operand(name);
                let in_register = operand.is_some_and(|o| o.allows(Memory::Rf));
                let written = operand.is_some_and(|o| o.access != OperandAccess::Read);
                if outputs != (in_register && written) {
                    continue;
                }
                let list = registers.remove(name).unwrap_or_default();
                let numbers: Vec<String> =
                    (number..number + list.len()).map(|n| format!("%{n}")).collect();
                number += list.len();
                let joined = numbers.join(", ");
                all.single.insert(name, numbers);
                all.texts.insert(
                    name,
                    if braces && in_register { format!("{{{joined}}}") } else { joined },
                );
                if outputs { &mut all.outputs } else { &mut all.inputs }.extend(list);
            }
        }
        all
    }

    /// The template with registers and numbers filled in.
    fn text(&self, atom: &Atom, filled: &[Filled], accumulates: bool) -> Fallible<String> {
        let mut text = String::new();
        for part in atom.template.parts() {
            match part {
                // A percent sign would begin an operand.
                Part::Text(plain) => text.push_str(&plain.replace('%', "%%")),
                Part::Operand(name) => text.push_str(self.texts.get(name).map_or("", |t| t)),
                Part::Register(name, i) => match self.single.get(name).and_then(|all| all.get(i)) {
                    Some(register) => text.push_str(register),
                    None => {
                        return Err(errors::unprintable(
                            format!("operand {name} of `{}` has no register {i}", atom.name),
                            "give each thread as many values as the atom has",
                        ));
                    }
                },
                Part::Array(name)
                | Part::At(name)
                | Part::Before(name)
                | Part::Reciprocal(name) => {
                    return Err(errors::unprintable(
                        format!(
                            "the PTX template of `{}` has a placeholder for C++: {name}",
                            atom.name
                        ),
                        "correct the template of the atom",
                    ));
                }
                Part::Accumulate => text.push(if accumulates { '1' } else { '0' }),
                Part::Major(name) => {
                    let (_, Filled::Described(d)) = named(atom, filled, name)? else {
                        return Err(errors::unprintable(
                            format!("operand {name} of `{}` has no descriptor", atom.name),
                            "use a tensor in SH with a canonical layout",
                        ));
                    };
                    text.push_str(&d.descriptor.major.immediate().to_string());
                }
            }
        }
        Ok(text)
    }
}
