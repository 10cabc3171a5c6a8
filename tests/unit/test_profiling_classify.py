"""Stacks to layers: real shapes of stacks, innermost frame last."""

import pytest

from investigator.attribution.layers import Layer
from investigator.profiling.classify import classify, is_collector, kind_of, layers_of
from investigator.profiling.stacks import Frame, Stack

ROOT = (
    "libc:__libc_start_call_main node:node::Start node:uv_run node:v8::internal::Execution::TryRunMicrotasks "
)
JS = ROOT + "node:Builtins_JSRunMicrotasksEntry js:JS:*sync_op_0__:7:36 "
ADDON = JS + "node:Builtins_CallApiCallbackOptimizedNoProfiling addon:Statement::JS_get "


def stack(text: str) -> Stack:
    frames = []
    for word in text.split():
        origin, _, symbol = word.partition(":")
        frames.append(Frame(origin, symbol.replace("_AN_", "(anonymous namespace)")))  # type: ignore[arg-type]
    return Stack("main", tuple(frames))


CASES: list[tuple[str, Layer | None]] = [
    # kernel first, whoever asked, but for the collector: its pauses hold what the kernel does for it
    (ADDON + "core:sqlite3VdbeExec libc:[libc.so.6] kernel:__x64_sys_pread64", "os"),
    (JS + "node:v8::internal::Heap::CollectGarbage kernel:clear_page", "gc"),
    # collector: under JS, under the addon, and with any leaf
    (JS + "node:Builtins_CEntry node:v8::internal::Runtime_AllocateInYoungGeneration "
     "node:v8::internal::Heap::CollectGarbage node:v8::internal::String::Size", "gc"),
    (ADDON + "node:v8::String::NewFromUtf8 node:v8::internal::Scavenger::Process libc:memcpy", "gc"),
    (ROOT + "node:node::PerIsolatePlatformData::RunForegroundTask "
     "node:v8::internal::IncrementalMarkingJob::Task::RunInternal", "gc"),
    # an allocation that does not collect belongs to whom asked
    (ADDON + "node:v8::Object::New node:v8::internal::Factory::NewJSObject "
     "node:v8::internal::HeapAllocator::AllocateRawSlowPath", "boundary"),
    # SQLite and cipher, and libc under them
    (ADDON + "core:sqlite3_step core:sqlite3VdbeExec", "native_core"),
    (ADDON + "core:sqlite3VdbeExec core:chacha20_block", "native_core"),
    (ADDON + "core:sqlite3MemMalloc libc:malloc", "native_core"),
    (JS + "node:Builtins_CallApiCallbackGeneric node:node::sqlite::StatementSync::Get node:sqlite3VdbeExec",
     "native_core"),
    # boundary: C++ of the addon, V8 under it, Node-API, trampolines
    (ADDON, "boundary"),
    (ADDON + "addon:Binder::Bind node:v8::String::Utf8Value::Utf8Value node:v8::internal::String::WriteUtf8",
     "boundary"),
    (ADDON + "node:v8::Object::Set node:v8::internal::Runtime::SetObjectProperty "
     "node:v8::internal::StringTable::LookupString", "boundary"),
    (JS + "node:Builtins_CallApiCallbackGeneric node:v8impl::_AN_::FunctionCallbackWrapper::Invoke addon:Get "
     "node:napi_create_string_utf8 node:v8::String::NewFromUtf8", "boundary"),
    (JS + "node:Builtins_CallApiCallbackGeneric", "boundary"),
    (JS + "node:v8::internal::Builtin_HandleApiCall node:v8::internal::_AN_::HandleApiCallHelper",
     "boundary"),
    (ADDON + "addon:Callback node:v8::Function::Call node:v8::internal::_AN_::Invoke node:Builtins_JSEntry",
     "boundary"),
    (ADDON + "libc:memcpy", "boundary"),
    (ADDON + "libc:[better_sqlite3.node]", "boundary"),
    # engine: generated code, builtins, the runtime that JS entered, compilers
    (JS, "engine"),
    (JS + "node:Builtins_JsonParse node:v8::internal::Builtin_JsonParse "
     "node:v8::internal::JsonParser<unsigned_char>::ParseJsonValue libc:memcpy", "engine"),
    (JS + "node:Builtins_InterpreterEntryTrampoline", "engine"),
    (JS + "node:Builtins_CEntry_Return1 node:v8::internal::Runtime_StringSplit", "engine"),
    (JS + "node:v8::internal::compiler::PipelineImpl::Run", "engine"),
    (ADDON + "core:sqlite3VdbeExec addon:CustomFunction::xFunc node:v8::Function::Call "
     "node:v8::internal::_AN_::Invoke node:Builtins_JSEntry js:JS:*udf", "engine"),
    # Node's own C++ is a boundary, the libraries bundled with it are the work
    (JS + "node:Builtins_CallApiCallbackGeneric node:node::crypto::Hash::HashUpdate", "boundary"),
    (JS + "node:Builtins_CallApiCallbackGeneric node:node::StringBytes::Write "
     "node:v8::internal::String::WriteUtf8", "boundary"),
    (JS + "node:Builtins_CallApiCallbackGeneric node:node::crypto::Hash::HashUpdate node:EVP_DigestUpdate "
     "node:sha256_block_data_order_avx2", "native_core"),
    (ADDON + "node:EVP_DigestUpdate node:sha256_block_data_order_avx2", "boundary"),
    (JS + "node:Builtins_CEntry node:v8::internal::Runtime_ToBase64 node:simdutf::haswell::encode", "engine"),
    (JS + "node:Builtins_CallApiCallbackGeneric node:node::Decode node:v8::String::NewFromUtf8 "
     "node:simdutf::haswell::convert", "boundary"),
    # the event loop itself
    (ROOT + "node:uv__io_poll", "engine"),
    # broken: cut in libc, nameless memory, a binary without names
    ("libc:[libc.so.6]", None),
    ("unknown:[unknown] libc:[libc.so.6]", None),
    ("node:v8::internal::String::WriteUtf8", None),
    (ADDON + "unknown:[stripped_addon]", None),
    ("unknown:[unknown] addon:Statement::JS_get", "boundary"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "layer"), CASES)
def test_a_stack_has_its_layer(text: str, layer: Layer | None) -> None:
    assert classify(stack(text)) == layer


@pytest.mark.parametrize(
    "symbol",
    [
        "v8::internal::MarkCompactCollector::MarkLiveObjects",
        "v8::internal::MinorMarkSweepCollector::CollectGarbage",
        "v8::internal::ScavengerCollector::JobTask::ProcessItems",
        "v8::internal::ConcurrentMarking::RunMajor",
        "v8::internal::Sweeper::RawSweep",
        "v8::internal::ArrayBufferSweeper::SweepingState::SweepingJob::Run",
        "v8::internal::(anonymous namespace)::Evacuator::EvacuatePage",
        "v8::internal::IncrementalMarking::Step",
        "v8::internal::Heap::PerformGarbageCollection",
        "v8::internal::GlobalHandles::PostGarbageCollectionProcessing",
    ],
)
def test_the_collector_is_known_by_name(symbol: str) -> None:
    assert kind_of(Frame("node", symbol)) == "collector"


@pytest.mark.parametrize(
    "symbol",
    [
        "v8::internal::Heap::AllocateRaw<int>",
        "v8::internal::Heap::AdjustAmountOfExternalAllocatedMemory",
        "v8::internal::MarkingBarrier::Write",
        "v8::internal::GlobalHandles::Create",
        "v8::internal::StringTable::LookupString",
        "v8::Isolate::AdjustAmountOfExternalAllocatedMemory",
    ],
)
def test_what_mutators_do_on_the_heap_is_no_collection(symbol: str) -> None:
    assert kind_of(Frame("node", symbol)) == "runtime"


def test_helpers_count_apart_and_broken_stacks_in_no_layer() -> None:
    helper = Stack("helper", stack(ROOT + "node:v8::internal::Sweeper::RawSweep").frames)
    compiling = Stack("helper", stack(ROOT + "node:v8::internal::maglev::MaglevCompiler::Compile").frames)
    stacks = {stack(ADDON): 3, stack(JS): 2, stack("libc:[libc.so.6]"): 4, helper: 9, compiling: 5}
    assert layers_of(stacks) == ({"boundary": 3, "engine": 2}, 4)
    assert is_collector(helper)
    assert not is_collector(compiling)
