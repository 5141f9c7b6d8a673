/*
 * carbyne for C: docs/c.md has an example.
 *
 * A function that can fail returns a status, and stores its result at a pointer. Its last argument
 * is a pointer for diagnostics, which may be null. Diagnostics are errors if the call fails, and
 * warnings if it succeeds. Without diagnostics null is stored. The caller owns results and
 * diagnostics, and frees each by its own function.
 *
 * Objects are immutable, and there is no state outside of them: any number of threads may use one
 * object at once. Pointers must be null or point to valid values of their types. Objects must have
 * been created by a function of this library, and must not have been freed. Texts without a size end
 * with a NUL byte. For null pointers, invalid numbers and texts that are not UTF-8 the status is
 * CARBYNE_STATUS_MISUSE.
 */


#ifndef CARBYNE_H
#define CARBYNE_H

/* Generated from capi/src by `BLESS=1 cargo test -p carbyne-capi header`; do not edit. */

#include <stddef.h>
#include <stdint.h>

/**
 * The version of this interface. It is raised when a function, a field or a meaning changes or is
 * removed. It is not raised when functions are added, or fields at the end of a structure with a
 * field `size`. Compare it with `carbyne_abi_version()` after opening the library at run time.
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
 * For `carbyne_function_new`: the simulator, instead of the index of a GPU.
 */
#define CARBYNE_SIMULATOR -1

/**
 * The status of a call.
 */
enum CarbyneStatus
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The call has a result. Its diagnostics, if there are any, are warnings.
     */
    CARBYNE_STATUS_OK = 0,
    /**
     * The program, a tensor, NVRTC or the GPU does not meet the requirements. The diagnostics have
     * codes.
     */
    CARBYNE_STATUS_REFUSED = 1,
    /**
     * The call itself is wrong: a null pointer, a text that is not UTF-8, or an invalid number.
     * The diagnostic has no code.
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
 * Whether a diagnostic is an error or a warning.
 */
enum CarbyneSeverity
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The call has no result.
     */
    CARBYNE_SEVERITY_ERROR = 0,
    /**
     * The call has a result, which may not be the intended one.
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
 * Errors, or warnings. All texts are valid until the list is freed.
 */
typedef struct CarbyneDiagnostics CarbyneDiagnostics;

/**
 * The kernels of a program as one function of tensors. Several threads may call it at once.
 */
typedef struct CarbyneFunction CarbyneFunction;

/**
 * A well-formed program.
 */
typedef struct CarbyneProgram CarbyneProgram;

/**
 * Cancels work from another thread. Any number of calls may have the same token.
 */
typedef struct CarbyneToken CarbyneToken;

/**
 * A strategy of the caller: a text as described in `docs/strategies.md`.
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
     * The size of `text` in bytes.
     */
    size_t text_size;
} CarbyneStrategy;

/**
 * Options of a decomposition. A field with the value 0 has its default.
 */
typedef struct CarbyneDecomposeOptions {
    /**
     * `sizeof(CarbyneDecomposeOptions)`.
     */
    size_t size;
    /**
     * `forbid_count` patterns of names of instructions that are not used; `*` stands for any
     * characters.
     */
    const char *const *forbid;
    /**
     * The number of elements of `forbid`.
     */
    size_t forbid_count;
    /**
     * `strategy_count` strategies in addition to the built-in ones.
     */
    const struct CarbyneStrategy *strategies;
    /**
     * The number of elements of `strategies`.
     */
    size_t strategy_count;
    /**
     * Maximum number of choices that the search considers, each a fraction of a millisecond. 0 for
     * 20000.
     */
    uint64_t budget;
    /**
     * The number of best choices that the document lists. 0 for 1.
     */
    size_t top;
    /**
     * The number of multiprocessors of the GPU. 0 for that of the default card of the
     * architecture.
     */
    uint32_t sms;
    /**
     * If not 0, the search also considers choices that cannot be better.
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
     * The line of the first byte, counted from 1. 0 if the error has no place in a text.
     */
    size_t line;
    /**
     * The column of the first byte, counted from 1 in characters. 0 if there is no place.
     */
    size_t column;
    /**
     * The line of `byte_end`.
     */
    size_t end_line;
    /**
     * The column of `byte_end`.
     */
    size_t end_column;
    /**
     * A text about the place. May be empty.
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
     * The index among devices of this type, from 0.
     */
    int32_t device_id;
} CarbyneDevice;

/**
 * A type of elements: `DLDataType` of DLPack.
 */
typedef struct CarbyneDataType {
    /**
     * 0 for signed integers, 1 for unsigned ones, 2 for IEEE floats, 4 for bfloat16, 6 for bool,
     * 10 for float8_e4m3fn, 12 for float8_e5m2.
     */
    uint8_t code;
    /**
     * The number of bits.
     */
    uint8_t bits;
    /**
     * Must be 1.
     */
    uint16_t lanes;
} CarbyneDataType;

/**
 * A tensor: `DLTensor` of DLPack, with equal layout. Fields have DLPack's names.
 */
typedef struct CarbyneTensor {
    /**
     * Memory of the device. The first element is at `byte_offset` bytes from here.
     */
    void *data;
    /**
     * The device of the memory.
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
     * `ndim` strides in elements. Null for a contiguous tensor whose last mode is the fastest.
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
     * The tensor with its memory.
     */
    const struct CarbyneTensor *tensor;
} CarbyneNamedTensor;

/**
 * Options of a simulation. A field with the value 0 has its default.
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
     * The number of elements of `symbols`.
     */
    size_t symbol_count;
    /**
     * The number of blocks of each kernel that are executed. 0 for all of them.
     */
    uint64_t blocks;
    /**
     * The seed of a random order of warps and asynchronous copies. 0 for the order of the text.
     */
    uint64_t schedule;
    /**
     * The seed of random contents for tensors that are not passed.
     */
    uint64_t seed;
    /**
     * Maximum number of steps of a kernel, of about eight nanoseconds each. 0 for the default
     * limit.
     */
    uint64_t budget;
} CarbyneSimulateOptions;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The `CARBYNE_ABI_VERSION` of the library.
 */
uint32_t carbyne_abi_version(void);

/**
 * The version of carbyne, such as "0.1.0".
 */
const char *carbyne_version(void);

/**
 * The bytes. A NUL byte follows the last one, so that a text is a C string. They are valid until
 * `bytes` is freed. Null for null.
 */
const char *carbyne_bytes_data(const struct CarbyneBytes *bytes);

/**
 * The number of bytes, without the NUL byte after the last one. 0 for null.
 */
size_t carbyne_bytes_size(const struct CarbyneBytes *bytes);

/**
 * Frees bytes. Does nothing for null.
 */
void carbyne_bytes_free(struct CarbyneBytes *bytes);

/**
 * Chooses layouts, instructions and synchronization for an architecture, such as "sm_80". Proves
 * that the accesses of the kernels that it changes are ordered. It does not change kernels that
 * name all of their instructions; `carbyne_program_check` proves these. `options` and `token` may
 * be null. The diagnostics of a result are warnings.
 */
CarbyneStatus carbyne_decompose(const struct CarbyneProgram *program,
                                const char *arch,
                                const struct CarbyneDecomposeOptions *options,
                                const struct CarbyneToken *token,
                                struct CarbyneDecomposed **decomposed,
                                struct CarbyneDiagnostics **diagnostics);

/**
 * The decomposed text as a program, for printing, checking or simulating.
 */
CarbyneStatus carbyne_decomposed_program(const struct CarbyneDecomposed *decomposed,
                                         struct CarbyneProgram **program,
                                         struct CarbyneDiagnostics **diagnostics);

/**
 * A file of CUDA C++ with all kernels. The names of its host functions begin with `name`, for
 * example `gemm_launch`. With null the file has no host functions.
 */
CarbyneStatus carbyne_decomposed_cuda(const struct CarbyneDecomposed *decomposed,
                                      const char *name,
                                      struct CarbyneBytes **cuda,
                                      struct CarbyneDiagnostics **diagnostics);

/**
 * Everything that a launcher must know, in JSON, as `carbyne compile --emit abi` prints it.
 */
CarbyneStatus carbyne_decomposed_abi(const struct CarbyneDecomposed *decomposed,
                                     struct CarbyneBytes **abi,
                                     struct CarbyneDiagnostics **diagnostics);

/**
 * The choices and their certificates, in JSON, as `carbyne decompose --emit json` prints them.
 * `token` may be null.
 */
CarbyneStatus carbyne_decomposed_document(const struct CarbyneDecomposed *decomposed,
                                          const struct CarbyneToken *token,
                                          struct CarbyneBytes **document,
                                          struct CarbyneDiagnostics **diagnostics);

/**
 * Compiles the kernels by NVRTC, which is searched when it is first used. `form` is `CARBYNE_PTX`
 * or `CARBYNE_CUBIN`.
 */
CarbyneStatus carbyne_decomposed_compile(const struct CarbyneDecomposed *decomposed,
                                         uint32_t form,
                                         struct CarbyneBytes **code,
                                         struct CarbyneDiagnostics **diagnostics);

/**
 * Frees a decomposed program that no call uses anymore. Objects that were created from it remain
 * valid. Does nothing for null.
 */
void carbyne_decomposed_free(struct CarbyneDecomposed *decomposed);

/**
 * The number of diagnostics. 0 for null.
 */
size_t carbyne_diagnostics_count(const struct CarbyneDiagnostics *list);

/**
 * The code of diagnostic `i`, such as "V0208". "" if the call itself was wrong or cancelled. Null
 * if there is no diagnostic `i`.
 */
const char *carbyne_diagnostics_code(const struct CarbyneDiagnostics *list, size_t i);

/**
 * Whether diagnostic `i` is an error or a warning. An error if there is no diagnostic `i`.
 */
CarbyneSeverity carbyne_diagnostics_severity(const struct CarbyneDiagnostics *list, size_t i);

/**
 * The message of diagnostic `i`, one sentence. Null if there is no diagnostic `i`.
 */
const char *carbyne_diagnostics_message(const struct CarbyneDiagnostics *list, size_t i);

/**
 * The help of diagnostic `i`: a way to fix it. Null if none is known, or if there is no diagnostic
 * `i`.
 */
const char *carbyne_diagnostics_help(const struct CarbyneDiagnostics *list, size_t i);

/**
 * The number of places of diagnostic `i`. 0 if there is no diagnostic `i`.
 */
size_t carbyne_diagnostics_span_count(const struct CarbyneDiagnostics *list, size_t i);

/**
 * Place `k` of diagnostic `i`. The first one is the place of the error; the others explain it. All
 * fields are 0 if there is no such place.
 */
struct CarbyneSpan carbyne_diagnostics_span(const struct CarbyneDiagnostics *list,
                                            size_t i,
                                            size_t k);

/**
 * All diagnostics as text for people, with the lines of the program, without color. Null for null.
 */
const char *carbyne_diagnostics_rendered(const struct CarbyneDiagnostics *list);

/**
 * All diagnostics as a list in JSON. Each element is an object as the command line prints it with
 * `--message-format json`. Null for null.
 */
const char *carbyne_diagnostics_json(const struct CarbyneDiagnostics *list);

/**
 * Frees diagnostics. Does nothing for null.
 */
void carbyne_diagnostics_free(struct CarbyneDiagnostics *list);

/**
 * The kernels of a decomposed program as one function. `device` is the index of a GPU, on which
 * the kernels are loaded, or `CARBYNE_SIMULATOR`. `code` is a result of
 * `carbyne_decomposed_compile` of `code_size` bytes. If it is null, the kernels are compiled.
 */
CarbyneStatus carbyne_function_new(const struct CarbyneDecomposed *decomposed,
                                   int32_t device,
                                   const char *code,
                                   size_t code_size,
                                   struct CarbyneFunction **function,
                                   struct CarbyneDiagnostics **diagnostics);

/**
 * The number of arguments of a call: tensors and numbers. 0 for null.
 */
size_t carbyne_function_parameter_count(const struct CarbyneFunction *function);

/**
 * The name of parameter `i`, counted from 0, without `%`. It is valid until the function is freed.
 * Null if there is no parameter `i`.
 */
const char *carbyne_function_parameter(const struct CarbyneFunction *function, size_t i);

/**
 * Calls a function. `arguments` are `count` tensors in the order of parameters. A number is a
 * tensor on the CPU without modes. Sizes follow from shapes; `symbols` are `symbol_count` sizes
 * that do not. All arguments are checked before anything is launched.
 *
 * On a GPU the kernels are enqueued in `stream`, and the call does not wait for them: tensors must
 * stay valid until the kernels are complete. `stream` is a `cudaStream_t` or `CUstream` of the
 * device on which the tensors lie, or null for the legacy default stream. On the simulator the
 * tensors lie on the CPU, `stream` is ignored, and the results are complete when the call returns.
 * `token` cancels a simulation; it may be null.
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
 * Frees a function that no call uses anymore, and whose kernels are complete. Does nothing for
 * null.
 */
void carbyne_function_free(struct CarbyneFunction *function);

/**
 * Reads and checks a program. `text` has `size` bytes of UTF-8. `path` is the path of its file,
 * which messages contain. Imported files lie below the folder of this file. Null for a text
 * without a file. If the text has errors, `*program` is null afterwards.
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
 * Proves that the accesses of kernels are ordered. Kernels that do not name all of their
 * instructions are skipped. `arch` is an architecture such as "sm_80", or null for the oldest one
 * that has all instructions. `*pairs` is a list in JSON with one object per kernel, as
 * `carbyne check --pairs` prints it. `pairs` and `token` may be null.
 */
CarbyneStatus carbyne_program_check(const struct CarbyneProgram *program,
                                    const char *arch,
                                    const struct CarbyneToken *token,
                                    struct CarbyneBytes **pairs,
                                    struct CarbyneDiagnostics **diagnostics);

/**
 * Frees a program that no call uses anymore. Objects that were created from it remain valid. Does
 * nothing for null.
 */
void carbyne_program_free(struct CarbyneProgram *program);

/**
 * Executes a program on the CPU, thread by thread, and compares bodies with what their specs mean.
 * Races, reads of undefined elements, and differences that rounding does not explain are errors.
 * `arch` may be null for the oldest architecture that has all instructions.
 *
 * `tensors` are `tensor_count` tensors of the program on the CPU; the contents of others are
 * random. If the call succeeds, tensors that kernels write contain the results; otherwise they are
 * unchanged. Integers of less than 8 bits take one byte each. `*report` is a list in JSON with one
 * object per kernel. `report`, `options` and `token` may be null.
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
 * Creates a token.
 */
struct CarbyneToken *carbyne_token_new(void);

/**
 * Cancels all calls with this token, including later ones. They return `CARBYNE_STATUS_CANCELLED`
 * within moments. Any thread may call this at any time. Does nothing for null.
 */
void carbyne_token_cancel(const struct CarbyneToken *token);

/**
 * Frees a token that no call uses anymore. Does nothing for null.
 */
void carbyne_token_free(struct CarbyneToken *token);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CARBYNE_H */
