//! Implements the C object for a decomposed program, in which every statement names its
//! instruction. Its functions decompose a program, and return its text, its CUDA C++, its PTX or
//! machine code, the data that a launcher needs, and the certificates.

use crate::border::{
    Outcome, Status, answer, given, list, misuse, optional_word, options, place, word,
};
use crate::bytes::Bytes;
use crate::diagnostics::{Diagnostics, Text};
use crate::objects::{free, new};
use crate::program::{Program, refused, table, utf8};
use crate::token::{Token, make_object, run_with_token};
use carbyne::documents;
use carbyne_codegen::{Host, nvrtc, print_kernels, print_program};
use carbyne_embed::{AtomTable, CudaKernel, Decomposition, LoadError, Search};
use carbyne_ir::limits::MAX_TEXT_BYTES;
use std::collections::BTreeSet;
use std::ffi::c_char;
use std::ptr::null;

/// A strategy of the caller: a text as described in `docs/strategies.md`.
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Strategy {
    /// Its name in messages.
    pub name: *const c_char,
    /// `text_size` bytes of UTF-8.
    pub text: *const c_char,
    /// The size of `text` in bytes.
    pub text_size: usize,
}

/// Options of a decomposition. A field with the value 0 has its default.
#[repr(C)]
#[derive(Copy, Clone)]
pub struct DecomposeOptions {
    /// `sizeof(CarbyneDecomposeOptions)`.
    pub size: usize,
    /// `forbid_count` patterns of names of instructions that are not used; `*` stands for any
    /// characters.
    pub forbid: *const *const c_char,
    /// The number of elements of `forbid`.
    pub forbid_count: usize,
    /// `strategy_count` strategies in addition to the built-in ones.
    pub strategies: *const Strategy,
    /// The number of elements of `strategies`.
    pub strategy_count: usize,
    /// Maximum number of choices that the search considers, each a fraction of a millisecond. 0 for
    /// 20000.
    pub budget: u64,
    /// The number of best choices that the document lists. 0 for 1.
    pub top: usize,
    /// The number of multiprocessors of the GPU. 0 for that of the default card of the
    /// architecture.
    pub sms: u32,
    /// If not 0, the search also considers choices that cannot be better.
    pub exhaustive: u32,
}

/// A program in which every statement names its instruction.
pub struct Decomposed {
    pub(crate) text: Text,
    pub(crate) found: carbyne_embed::Decomposed,
    reports: documents::Reports,
    pub(crate) table: AtomTable,
    how: Decomposition,
    /// The tensors that the text declares. Strategies may add others.
    pub(crate) declared: BTreeSet<String>,
}

impl Decomposed {
    fn new(
        program: &Program,
        table: AtomTable,
        how: Decomposition,
    ) -> Outcome<(Self, Diagnostics)> {
        let text = program.text.clone();
        let find = || {
            let found = program.checked.decompose_by(&table, &how)?;
            let (reports, warnings) = documents::order(&text.text, &found, &table)?;
            Ok((found, reports, warnings))
        };
        let (mut found, reports, unknown) = find().map_err(|errors| refused(&text, errors))?;
        found.warnings.extend(unknown);
        let warnings = Diagnostics::new(&text, &found.warnings);
        let declared = documents::declared(program.checked.module());
        Ok((Decomposed { text, found, reports, table, how, declared }, warnings))
    }

    /// The kernels as CUDA C++, without host functions.
    pub(crate) fn kernels(&self) -> Outcome<(String, Vec<CudaKernel>)> {
        let program = &self.found.program;
        let all: Vec<_> = program.kernels.iter().map(|id| (program, *id)).collect();
        print_kernels(&all, &self.table, None).map_err(|errors| refused(&self.text, errors))
    }

    /// PTX and machine code of all kernels, compiled by NVRTC.
    pub(crate) fn compiled(&self) -> Outcome<nvrtc::Compiled> {
        let (source, _) = self.kernels()?;
        let (arch, how) = (self.table.arch.nvrtc_name(), nvrtc::Options::default());
        Ok(nvrtc::compile(&source, arch, nvrtc::Emit::Cubin, &how)?)
    }
}

/// Options of a decomposition without references to memory of the caller.
struct Asked {
    forbidden: Vec<String>,
    /// Names and texts.
    strategies: Vec<(String, Vec<u8>)>,
    search: Search,
}

impl Asked {
    /// The options of the caller.
    ///
    /// # Safety
    /// Pointers are null or point to valid values of their types.
    unsafe fn new(of: &DecomposeOptions) -> Outcome<Asked> {
        let usual = Search::default();
        let search = Search {
            budget: if of.budget == 0 { usual.budget } else { of.budget },
            top: if of.top == 0 { usual.top } else { of.top },
            exhaustive: of.exhaustive != 0,
            sms: (of.sms != 0).then_some(of.sms),
        };
        // SAFETY: the caller guarantees it.
        let strategy = |s: &Strategy| unsafe {
            let text = list(s.text.cast::<u8>(), s.text_size, "strategies.text")?;
            let text = text[..text.len().min(MAX_TEXT_BYTES + 1)].to_vec();
            Ok((word(s.name, "strategies.name")?.to_owned(), text))
        };
        // SAFETY: the caller guarantees it.
        let pattern = |p: &*const c_char| unsafe { word(*p, "forbid") }.map(str::to_owned);
        // SAFETY: the caller guarantees it.
        let (forbidden, strategies) = unsafe {
            let strategies = list(of.strategies, of.strategy_count, "strategies")?;
            (list(of.forbid, of.forbid_count, "forbid")?, strategies)
        };
        Ok(Asked {
            forbidden: forbidden.iter().map(pattern).collect::<Outcome<_>>()?,
            strategies: strategies.iter().map(strategy).collect::<Outcome<_>>()?,
            search,
        })
    }

    fn decomposition(self) -> Outcome<Decomposition> {
        let mut how = Decomposition { search: self.search, ..Decomposition::default() };
        for (name, text) in self.strategies {
            let text = utf8(&name, text)?;
            let alone = &mut |_: &str, _: &str| Err(LoadError::Outside);
            let added = how.strategies.add(&text, &name, alone);
            let own = Text { name: name.into(), text: text.as_str().into() };
            added.map_err(|errors| refused(&own, errors))?;
        }
        Ok(how)
    }
}

/// Chooses layouts, instructions and synchronization for an architecture, such as "sm_80". Proves
/// that the accesses of the kernels that it changes are ordered. It does not change kernels that
/// name all of their instructions; `carbyne_program_check` proves these. `options` and `token` may
/// be null. The diagnostics of a result are warnings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_decompose(
    program: *const Program,
    arch: *const c_char,
    options: *const DecomposeOptions,
    token: *const Token,
    decomposed: *mut *mut Decomposed,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let work = || {
        // SAFETY: see the header of `lib.rs`.
        let (decomposed, program, arch, asked) = unsafe {
            let decomposed = place(decomposed, "decomposed")?;
            let (program, arch) = (given(program, "program")?, word(arch, "arch")?);
            (decomposed, program, arch, Asked::new(&self::options(options, "options")?)?)
        };
        let find = || {
            let table = table(arch, &asked.forbidden)?;
            Decomposed::new(program, table, asked.decomposition()?)
        };
        // SAFETY: see the header of `lib.rs`.
        let (found, warnings) = unsafe { run_with_token(token, find) }?;
        *decomposed = new(found);
        Ok(warnings)
    };
    // SAFETY: see the header of `lib.rs`.
    unsafe { answer(diagnostics, work) }
}

/// The decomposed text as a program, for printing, checking or simulating.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_decomposed_program(
    decomposed: *const Decomposed,
    program: *mut *mut Program,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let read = |of: &Decomposed| Program::new(of.found.text.clone(), None);
    let from = (decomposed, "decomposed");
    // SAFETY: see the header of `lib.rs`.
    unsafe { make_object(from, null(), (program, "program"), diagnostics, read) }
}

/// A file of CUDA C++ with all kernels. The names of its host functions begin with `name`, for
/// example `gemm_launch`. With null the file has no host functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_decomposed_cuda(
    decomposed: *const Decomposed,
    name: *const c_char,
    cuda: *mut *mut Bytes,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    // SAFETY: see the header of `lib.rs`.
    let name = unsafe { optional_word(name, "name") };
    let show = |of: &Decomposed| {
        let Some(name) = name? else { return Ok(Bytes::new(of.kernels()?.0)) };
        let (program, host) =
            (&of.found.program, Host { name, declared: &of.declared, lines: None });
        let printed = print_program(program, &program.kernels, &of.table, host);
        Ok(Bytes::new(printed.map_err(|errors| refused(&of.text, errors))?.0))
    };
    let from = (decomposed, "decomposed");
    // SAFETY: see the header of `lib.rs`.
    unsafe { make_object(from, null(), (cuda, "cuda"), diagnostics, show) }
}

/// Everything that a launcher must know, in JSON, as `carbyne compile --emit abi` prints it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_decomposed_abi(
    decomposed: *const Decomposed,
    abi: *mut *mut Bytes,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let show = |of: &Decomposed| {
        let (_, kernels) = of.kernels()?;
        Ok(Bytes::new(documents::abi(&kernels, &of.found.program, &of.table)))
    };
    let from = (decomposed, "decomposed");
    // SAFETY: see the header of `lib.rs`.
    unsafe { make_object(from, null(), (abi, "abi"), diagnostics, show) }
}

/// The choices and their certificates, in JSON, as `carbyne decompose --emit json` prints them.
/// `token` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_decomposed_document(
    decomposed: *const Decomposed,
    token: *const Token,
    document: *mut *mut Bytes,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let show = |of: &Decomposed| {
        let how = (&of.table, &of.how);
        Ok(Bytes::new(documents::decomposition(&of.found, &of.reports, &of.text.text, how)))
    };
    let from = (decomposed, "decomposed");
    // SAFETY: see the header of `lib.rs`.
    unsafe { make_object(from, token, (document, "document"), diagnostics, show) }
}

/// For `carbyne_decomposed_compile`: PTX, a text.
pub const PTX: u32 = 0;

/// For `carbyne_decomposed_compile`: machine code of the architecture.
pub const CUBIN: u32 = 1;

/// Compiles the kernels by NVRTC, which is searched when it is first used. `form` is `CARBYNE_PTX`
/// or `CARBYNE_CUBIN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_decomposed_compile(
    decomposed: *const Decomposed,
    form: u32,
    code: *mut *mut Bytes,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let show = |of: &Decomposed| match form {
        PTX => Ok(Bytes::new(of.compiled()?.ptx)),
        CUBIN => Ok(Bytes::new(of.compiled()?.cubin)),
        other => {
            let what = format!("`form` is {other}, which is not a valid form");
            Err(misuse(what, "pass `CARBYNE_PTX` or `CARBYNE_CUBIN`"))
        }
    };
    let from = (decomposed, "decomposed");
    // SAFETY: see the header of `lib.rs`.
    unsafe { make_object(from, null(), (code, "code"), diagnostics, show) }
}

/// Frees a decomposed program that no call uses anymore. Objects that were created from it remain
/// valid. Does nothing for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_decomposed_free(decomposed: *mut Decomposed) {
    // SAFETY: see the header of `lib.rs`.
    unsafe { free(decomposed) }
}
