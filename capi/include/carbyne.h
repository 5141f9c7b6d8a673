/*
 * carbyne for C: docs/c.md has an example.
 *
 * A function that can fail returns a status, and puts its result into the place that it is given. Its last argument is the place of diagnostics,
 * which are errors if there is no result and warnings if there is one; null is put there if nothing is to be said. The argument
 * may be null. Results and diagnostics are the caller's, who frees each by its own function.
 *
 * Objects do not change, and there is no state but in them: any number of threads may use one object at once. Pointers are null or point to
 * what their types say; objects are those that a function of this library has made and that have not been freed; texts without a size
 * end with a NUL byte. Null pointers, wrong numbers and texts that are not UTF-8 are CARBYNE_STATUS_MISUSE.
 */


#ifndef CARBYNE_H
#define CARBYNE_H

/* Made of capi/src by `BLESS=1 cargo test -p carbyne-capi header`; not to be edited. */

#include <stddef.h>
#include <stdint.h>

/**
 * The version of this interface. It is raised when a function, a field or a meaning changes or goes; it is not raised when functions, or
 * fields at the end of a structure that has a `size`, are added. Compare it with `carbyne_abi_version()` after opening the library at
 * run time.
 */
#define CARBYNE_ABI_VERSION 1

/**
 * For `carbyne_decomposed_compile`: PTX, a text.
 */
#define CARBYNE_PTX 0

/**
 * For `carbyne_decomposed_compile`: machine code of the architecture.
 */
#define CARBYNE_CUBIN 1

/**
 * For `carbyne_function_new`: the simulator, in place of a GPU's number.
 */
#define CARBYNE_SIMULATOR -1

/**
 * How a call ended.
 */
enum CarbyneStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * There is a result. Diagnostics, if there are any, are warnings.
     */
    CARBYNE_STATUS_OK = 0,
    /**
     * The program, a tensor, NVRTC or the GPU is not as it must be; the diagnostics have a code.
     */
    CARBYNE_STATUS_REFUSED = 1,
    /**
     * The call itself is wrong: a null pointer, a text that is not UTF-8, a number that is none of those that are wanted. The diagnostic
     * has no code.
     */
    CARBYNE_STATUS_MISUSE = 2,
    /**
     * The work was cancelled by its token.
     */
    CARBYNE_STATUS_CANCELLED = 3,
    /**
     * A defect of carbyne. Please report it.
     */
    CARBYNE_STATUS_INTERNAL = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum CarbyneStatus CarbyneStatus;
#else
typedef int32_t CarbyneStatus;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Whether a diagnostic stops what was asked for.
 */
enum CarbyneSeverity
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * There is no result.
     */
    CARBYNE_SEVERITY_ERROR = 0,
    /**
     * There is a result, which may not be what is wanted.
     */
    CARBYNE_SEVERITY_WARNING = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum CarbyneSeverity CarbyneSeverity;
#else
typedef int32_t CarbyneSeverity;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A text in UTF-8, or machine code.
 */
typedef struct CarbyneBytes CarbyneBytes;

/**
 * A program in which every statement names its instruction.
 */
typedef struct CarbyneDecomposed CarbyneDecomposed;

/**
 * Errors, or warnings. All texts are there until the list is freed.
 */
typedef struct CarbyneDiagnostics CarbyneDiagnostics;

/**
 * The kernels of a program as one function of tensors. Threads may call it at once.
 */
typedef struct CarbyneFunction CarbyneFunction;

/**
 * A program that is well formed.
 */
typedef struct CarbyneProgram CarbyneProgram;

/**
 * Ends work from another thread. A token may be given to any number of calls, which end together.
 */
typedef struct CarbyneToken CarbyneToken;

/**
 * A strategy of the caller's own: a text as in `docs/strategies.md`.
 */
typedef struct CarbyneStrategy {
    /**
     * Its name in messages.
     */
    const char *name;
    /**
     * `text_size` bytes of UTF-8.
     */
    const char *text;
    /**
     * Bytes of `text`.
     */
    size_t text_size;
} CarbyneStrategy;

/**
 * Options of a decomposition. A field of 0 has its default.
 */
typedef struct CarbyneDecomposeOptions {
    /**
     * `sizeof(CarbyneDecomposeOptions)`.
     */
    size_t size;
    /**
     * `forbid_count` names of instructions that are not taken; `*` stands for anything.
     */
    const char *const *forbid;
    /**
     * Elements of `forbid`.
     */
    size_t forbid_count;
    /**
     * `strategy_count` strategies beside the built-in ones.
     */
    const struct CarbyneStrategy *strategies;
    /**
     * Elements of `strategies`.
     */
    size_t strategy_count;
    /**
     * Choices that are looked at, each a fraction of a millisecond. 0 for 20000.
     */
    uint64_t budget;
    /**
     * How many of the best choices the document lists. 0 for 1.
     */
    size_t top;
    /**
     * Multiprocessors of the GPU that choices are made for. 0 for those of the usual card of the architecture.
     */
    uint32_t sms;
    /**
     * Not 0: choices that cannot be better are looked at, too.
     */
    uint32_t exhaustive;
} CarbyneDecomposeOptions;

/**
 * A place in a text.
 */
typedef struct CarbyneSpan {
    /**
     * The first byte, counted from 0.
     */
    size_t byte_start;
    /**
     * One past the last byte.
     */
    size_t byte_end;
    /**
     * The line of the first byte, counted from 1; 0 if the error has no place in a text.
     */
    size_t line;
    /**
     * Its column, counted from 1 in characters; 0 if there is no place.
     */
    size_t column;
    /**
     * The line of `byte_end`.
     */
    size_t end_line;
    /**
     * Its column.
     */
    size_t end_column;
    /**
     * A text about the place; may be empty.
     */
    const char *label;
} CarbyneSpan;

/**
 * A device: `DLDevice` of DLPack.
 */
typedef struct CarbyneDevice {
    /**
     * 1 for the CPU, 2 for CUDA.
     */
    int32_t device_type;
    /**
     * Counted from 0 among devices of the type.
     */
    int32_t device_id;
} CarbyneDevice;

/**
 * A type of elements: `DLDataType` of DLPack.
 */
typedef struct CarbyneDataType {
    /**
     * 0 for signed integers, 1 for unsigned ones, 2 for IEEE floats, 4 for bfloat16, 6 for bool, 10 for float8_e4m3fn, 12 for float8_e5m2.
     */
    uint8_t code;
    /**
     * Bits of a number.
     */
    uint8_t bits;
    /**
     * Numbers of an element: 1.
     */
    uint16_t lanes;
} CarbyneDataType;

/**
 * A tensor that its owner describes: `DLTensor` of DLPack, byte for byte. Fields have DLPack's names.
 */
typedef struct CarbyneTensor {
    /**
     * Memory of the device. The first element lies `byte_offset` bytes behind it.
     */
    void *data;
    /**
     * Where the memory is.
     */
    struct CarbyneDevice device;
    /**
     * The number of modes, at most 64.
     */
    int32_t ndim;
    /**
     * Type of the elements.
     */
    struct CarbyneDataType dtype;
    /**
     * `ndim` extents, the outermost first.
     */
    const int64_t *shape;
    /**
     * `ndim` distances from one element to the next of a mode, in elements. Null: the last mode is the fastest, without gaps.
     */
    const int64_t *strides;
    /**
     * Bytes from `data` to the first element.
     */
    uint64_t byte_offset;
} CarbyneTensor;

/**
 * The value of a size that the program leaves open.
 */
typedef struct CarbyneSymbol {
    /**
     * Its name in the text.
     */
    const char *name;
    /**
     * Its value.
     */
    int64_t value;
} CarbyneSymbol;

/**
 * A tensor of the program, or a number, which is a tensor without modes.
 */
typedef struct CarbyneNamedTensor {
    /**
     * Its name in the text, without `%`.
     */
    const char *name;
    /**
     * Where it lies.
     */
    const struct CarbyneTensor *tensor;
} CarbyneNamedTensor;

/**
 * Options of a simulation. A field of 0 has its default.
 */
typedef struct CarbyneSimulateOptions {
    /**
     * `sizeof(CarbyneSimulateOptions)`.
     */
    size_t size;
    /**
     * `symbol_count` values of sizes that the program leaves open.
     */
    const struct CarbyneSymbol *symbols;
    /**
     * Elements of `symbols`.
     */
    size_t symbol_count;
    /**
     * Blocks of each kernel that run. 0 for all of them.
     */
    uint64_t blocks;
    /**
     * Draws another order of warps and asynchronous copies. 0 for that of the text.
     */
    uint64_t schedule;
    /**
     * Draws tensors that are not given.
     */
    uint64_t seed;
    /**
     * Steps of a kernel, some eight nanoseconds each. 0 for the usual limit.
     */
    uint64_t budget;
} CarbyneSimulateOptions;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * `CARBYNE_ABI_VERSION` of the library.
 */
uint32_t carbyne_abi_version(void);

/**
 * The version of carbyne, such as "0.1.0".
 */
const char *carbyne_version(void);

/**
 * The bytes. A NUL byte follows the last one, so that a text is one of C. They are there until `bytes` is freed. Null for null.
 */
const char *carbyne_bytes_data(const struct CarbyneBytes *bytes);

/**
 * Their number, without the NUL byte behind them. 0 for null.
 */
size_t carbyne_bytes_size(const struct CarbyneBytes *bytes);

/**
 * Frees bytes. Null is nothing.
 */
void carbyne_bytes_free(struct CarbyneBytes *bytes);

/**
 * Chooses layouts, instructions and synchronization for an architecture, such as "sm_80", and proves that accesses of the kernels that it
 * changes are ordered. It leaves kernels alone that name all of their instructions: `carbyne_program_check` proves these.
 * `options` may be null, as may `token`. Diagnostics of a result are its warnings.
 */
CarbyneStatus carbyne_decompose(const struct CarbyneProgram *program,
                                const char *arch,
                                const struct CarbyneDecomposeOptions *options,
                                const struct CarbyneToken *token,
                                struct CarbyneDecomposed **decomposed,
                                struct CarbyneDiagnostics **diagnostics);

/**
 * The decomposed text as a program: to be printed, checked, simulated.
 */
CarbyneStatus carbyne_decomposed_program(const struct CarbyneDecomposed *decomposed,
                                         struct CarbyneProgram **program,
                                         struct CarbyneDiagnostics **diagnostics);

/**
 * A file of CUDA C++ with all kernels. `name` begins the names of the functions of the host in it, such as `gemm_launch`; null for the
 * kernels alone.
 */
CarbyneStatus carbyne_decomposed_cuda(const struct CarbyneDecomposed *decomposed,
                                      const char *name,
                                      struct CarbyneBytes **cuda,
                                      struct CarbyneDiagnostics **diagnostics);

/**
 * All that a launcher must know, in JSON, as `carbyne compile --emit abi` prints it.
 */
CarbyneStatus carbyne_decomposed_abi(const struct CarbyneDecomposed *decomposed,
                                     struct CarbyneBytes **abi,
                                     struct CarbyneDiagnostics **diagnostics);

/**
 * The choices and certificates of why they are right, in JSON, as `carbyne decompose --emit json` prints them. `token` may be null.
 */
CarbyneStatus carbyne_decomposed_document(const struct CarbyneDecomposed *decomposed,
                                          const struct CarbyneToken *token,
                                          struct CarbyneBytes **document,
                                          struct CarbyneDiagnostics **diagnostics);

/**
 * The kernels compiled by NVRTC, which is looked for when it is first used. `form` is `CARBYNE_PTX` or `CARBYNE_CUBIN`.
 */
CarbyneStatus carbyne_decomposed_compile(const struct CarbyneDecomposed *decomposed,
                                         uint32_t form,
                                         struct CarbyneBytes **code,
                                         struct CarbyneDiagnostics **diagnostics);

/**
 * Frees a decomposed program that no call uses anymore. Objects made from it remain valid. Null is nothing.
 */
void carbyne_decomposed_free(struct CarbyneDecomposed *decomposed);

/**
 * The number of diagnostics. 0 for null.
 */
size_t carbyne_diagnostics_count(const struct CarbyneDiagnostics *list);

/**
 * The code of diagnostic `i`, such as "V0208"; "" if the call itself was wrong or cancelled. Null if there is no diagnostic `i`.
 */
const char *carbyne_diagnostics_code(const struct CarbyneDiagnostics *list,
                                     size_t i);

/**
 * Whether diagnostic `i` is an error or a warning; an error if there is no diagnostic `i`.
 */
CarbyneSeverity carbyne_diagnostics_severity(const struct CarbyneDiagnostics *list, size_t i);

/**
 * One sentence about diagnostic `i`. Null if there is no diagnostic `i`.
 */
const char *carbyne_diagnostics_message(const struct CarbyneDiagnostics *list, size_t i);

/**
 * A remedy of diagnostic `i`. Null if none is known, or if there is no diagnostic `i`.
 */
const char *carbyne_diagnostics_help(const struct CarbyneDiagnostics *list, size_t i);

/**
 * The number of places of diagnostic `i`. 0 if there is no diagnostic `i`.
 */
size_t carbyne_diagnostics_span_count(const struct CarbyneDiagnostics *list, size_t i);

/**
 * Place `k` of diagnostic `i`. The first one is where the error is; others say why. All of it is 0 if there is none.
 */
struct CarbyneSpan carbyne_diagnostics_span(const struct CarbyneDiagnostics *list,
                                            size_t i,
                                            size_t k);

/**
 * All diagnostics for people, with the lines of the text under which they stand, without color. Null for null.
 */
const char *carbyne_diagnostics_rendered(const struct CarbyneDiagnostics *list);

/**
 * All diagnostics as a list in JSON; each is what the command line prints by `--message-format json`. Null for null.
 */
const char *carbyne_diagnostics_json(const struct CarbyneDiagnostics *list);

/**
 * Frees diagnostics. Null is nothing.
 */
void carbyne_diagnostics_free(struct CarbyneDiagnostics *list);

/**
 * The kernels of a decomposed program as one function. `device` is the number of a GPU, on which the kernels are loaded, or
 * `CARBYNE_SIMULATOR`. `code` has `code_size` bytes that `carbyne_decomposed_compile` has made; if it is null, the kernels are compiled.
 */
CarbyneStatus carbyne_function_new(const struct CarbyneDecomposed *decomposed,
                                   int32_t device,
                                   const char *code,
                                   size_t code_size,
                                   struct CarbyneFunction **function,
                                   struct CarbyneDiagnostics **diagnostics);

/**
 * The number of tensors and numbers that a call takes. 0 for null.
 */
size_t carbyne_function_parameter_count(const struct CarbyneFunction *function);

/**
 * The name in the text of parameter `i`, counted from 0, without `%`. It is there until the function is freed. Null if there is none.
 */
const char *carbyne_function_parameter(const struct CarbyneFunction *function,
                                       size_t i);

/**
 * Calls a function. `arguments` are `count` tensors in the order of parameters; a number is a tensor on the CPU without modes. Sizes are
 * taken from shapes; `symbols` are `symbol_count` sizes that no shape states. All is checked before anything is launched.
 *
 * On a GPU, kernels are put into `stream`, a `cudaStream_t` or `CUstream` of the device on which the tensors lie, null for the legacy
 * default stream, and are not waited for: tensors must stay until they are done. On the simulator, tensors lie on the CPU, `stream` is not
 * used, and results are there when the call returns. `token` ends a simulation; it may be null.
 */
CarbyneStatus carbyne_function_call(const struct CarbyneFunction *function,
                                    const struct CarbyneTensor *const *arguments,
                                    size_t count,
                                    const struct CarbyneSymbol *symbols,
                                    size_t symbol_count,
                                    void *stream,
                                    const struct CarbyneToken *token,
                                    struct CarbyneDiagnostics **diagnostics);

/**
 * Frees a function that no call uses anymore, and whose kernels are done. Null is nothing.
 */
void carbyne_function_free(struct CarbyneFunction *function);

/**
 * Reads and checks a program. `text` has `size` bytes of UTF-8. `path` is that of the file it comes from, which messages name and
 * below whose folder imported files lie; null for a text of no file. `*program` is null afterwards if the text was refused.
 */
CarbyneStatus carbyne_program_new(const char *text,
                                  size_t size,
                                  const char *path,
                                  struct CarbyneProgram **program,
                                  struct CarbyneDiagnostics **diagnostics);

/**
 * The text of a program.
 */
CarbyneStatus carbyne_program_text(const struct CarbyneProgram *program,
                                   struct CarbyneBytes **text,
                                   struct CarbyneDiagnostics **diagnostics);

/**
 * The text of a program as `carbyne fmt` prints it.
 */
CarbyneStatus carbyne_program_format(const struct CarbyneProgram *program,
                                     struct CarbyneBytes **text,
                                     struct CarbyneDiagnostics **diagnostics);

/**
 * Proves that accesses are ordered, of kernels that name their instructions; others are left out. `arch` is an architecture such as "sm_80",
 * or null for the oldest one that has all instructions. `*pairs` is a list in JSON, one object for each kernel, as
 * `carbyne check --pairs` prints it; `pairs` may be null. `token` may be null.
 */
CarbyneStatus carbyne_program_check(const struct CarbyneProgram *program,
                                    const char *arch,
                                    const struct CarbyneToken *token,
                                    struct CarbyneBytes **pairs,
                                    struct CarbyneDiagnostics **diagnostics);

/**
 * Frees a program that no call uses anymore. Objects made from it remain valid. Null is nothing.
 */
void carbyne_program_free(struct CarbyneProgram *program);

/**
 * Executes a program on the CPU as it stands, thread by thread, and compares it with what it means: races, reads of undefined elements
 * and differences that rounding does not explain are errors. `arch` may be null for the oldest architecture that has all instructions.
 *
 * `tensor_count` tensors of the program are given, on the CPU; others are drawn. Tensors that kernels write hold their results
 * afterwards; unless a call succeeds, they are left as they were. Integers of fewer than 8 bits take a byte each. `*report` is a list in
 * JSON, one object for each kernel; `report`, `options` and `token` may be null.
 */
CarbyneStatus carbyne_program_simulate(const struct CarbyneProgram *program,
                                       const char *arch,
                                       const struct CarbyneNamedTensor *tensors,
                                       size_t tensor_count,
                                       const struct CarbyneSimulateOptions *options,
                                       const struct CarbyneToken *token,
                                       struct CarbyneBytes **report,
                                       struct CarbyneDiagnostics **diagnostics);

/**
 * A token that does not end anything yet.
 */
struct CarbyneToken *carbyne_token_new(void);

/**
 * Ends all work that was given this token, also such as begins later: it returns `CARBYNE_STATUS_CANCELLED` within moments. Any thread
 * may do this, at any time. Null is nothing.
 */
void carbyne_token_cancel(const struct CarbyneToken *token);

/**
 * Frees a token that no call uses anymore. Null is nothing.
 */
void carbyne_token_free(struct CarbyneToken *token);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CARBYNE_H */
