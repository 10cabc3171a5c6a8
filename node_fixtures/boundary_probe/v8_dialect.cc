// The primitives of the boundary between JavaScript and C++, in V8's own API: each does what an addon for SQLite does
// with it, on values that lie ready in C++ memory. napi_dialect.cc does the same work through Node-API.
//
//   noop() args(a, b, c, d) utf8(text) threadTimes(Float64Array)
//   new Table(columns, rows): unwrap() text() blob() rowSet() rowBulk() rowTemplate() arrayOfRows(n) callback(fn)
#include <node.h>
#include <node_buffer.h>
#include <node_object_wrap.h>

#include <string_view>
#include <vector>

#include "cells.h"

namespace {

using probe::Cell;
using probe::Kind;
using v8::Array;
using v8::Context;
using v8::Function;
using v8::FunctionCallbackInfo;
using v8::FunctionTemplate;
using v8::HandleScope;
using v8::Isolate;
using v8::Local;
using v8::Name;
using v8::NewStringType;
using v8::Number;
using v8::Object;
using v8::String;
using v8::Value;

using Arguments = FunctionCallbackInfo<Value>;

// Vectors of handles: V8 has had its own since 12; before, a plain vector on the stack was the way.
#if V8_MAJOR_VERSION >= 12
template <typename T>
using Handles = v8::LocalVector<T>;
#define HANDLES(Type, name, isolate) Handles<Type> name(isolate)
#else
template <typename T>
using Handles = std::vector<Local<T>>;
#define HANDLES(Type, name, isolate) Handles<Type> name
#endif

#if V8_MAJOR_VERSION >= 13
#define PROTOTYPE_OF(object) ((object)->GetPrototypeV2())
#else
#define PROTOTYPE_OF(object) ((object)->GetPrototype())
#endif

#if V8_MAJOR_VERSION >= 12
#define HAS_DICTIONARY_TEMPLATE 1
#endif

Local<String> Interned(Isolate* isolate, const std::string& text) {
  return String::NewFromUtf8(isolate, text.data(), NewStringType::kInternalized, static_cast<int>(text.size()))
      .ToLocalChecked();
}

Local<String> Text(Isolate* isolate, const std::string& text) {
  return String::NewFromUtf8(isolate, text.data(), NewStringType::kNormal, static_cast<int>(text.size()))
      .ToLocalChecked();
}

Local<Value> ToJs(Isolate* isolate, const Cell& cell) {
  switch (cell.kind) {
    case Kind::kInteger:
      return Number::New(isolate, static_cast<double>(cell.integer));
    case Kind::kFloat:
      return Number::New(isolate, cell.number);
    case Kind::kText:
      return Text(isolate, cell.bytes);
    case Kind::kBlob:
      return node::Buffer::Copy(isolate, cell.bytes.data(), cell.bytes.size()).ToLocalChecked();
    case Kind::kNull:
      break;
  }
  return v8::Null(isolate);
}

Cell FromJs(Isolate* isolate, Local<Value> value) {
  Cell cell;
  if (value->IsNumber()) {
    double number = value.As<Number>()->Value();
    cell.kind = number == static_cast<double>(static_cast<int64_t>(number)) ? Kind::kInteger : Kind::kFloat;
    cell.integer = static_cast<int64_t>(number);
    cell.number = number;
  } else if (value->IsString()) {
    String::Utf8Value utf8(isolate, value);
    cell.kind = Kind::kText;
    cell.bytes.assign(*utf8, utf8.length());
  } else if (node::Buffer::HasInstance(value)) {
    cell.kind = Kind::kBlob;
    cell.bytes.assign(node::Buffer::Data(value), node::Buffer::Length(value));
  }
  return cell;
}

class Table : public node::ObjectWrap {
 public:
  static Local<Function> Init(Isolate* isolate, Local<Context> context) {
    Local<FunctionTemplate> made = FunctionTemplate::New(isolate, New);
    made->InstanceTemplate()->SetInternalFieldCount(1);
    made->SetClassName(Interned(isolate, "Table"));
    Method(isolate, made, "unwrap", DoUnwrap);
    Method(isolate, made, "text", DoText);
    Method(isolate, made, "blob", DoBlob);
    Method(isolate, made, "rowSet", DoRowSet);
    Method(isolate, made, "rowBulk", DoRowBulk);
    Method(isolate, made, "rowTemplate", DoRowTemplate);
    Method(isolate, made, "arrayOfRows", DoArrayOfRows);
    Method(isolate, made, "callback", DoCallback);
    return made->GetFunction(context).ToLocalChecked();
  }

 private:
  static void Method(Isolate* isolate, Local<FunctionTemplate> of, const char* name, v8::FunctionCallback function) {
    of->PrototypeTemplate()->Set(
        Interned(isolate, name),
        FunctionTemplate::New(isolate, function, Local<Value>(), v8::Signature::New(isolate, of)));
  }

  static void New(const Arguments& info) {
    Isolate* isolate = info.GetIsolate();
    Local<Context> context = isolate->GetCurrentContext();
    if (!info.IsConstructCall() || !info[0]->IsArray() || !info[1]->IsArray()) {
      isolate->ThrowException(v8::Exception::TypeError(Text(isolate, "new Table(columns, rows) takes two arrays")));
      return;
    }
    Table* table = new Table();
    Local<Array> columns = info[0].As<Array>();
    for (uint32_t k = 0; k < columns->Length(); ++k) {
      String::Utf8Value name(isolate, columns->Get(context, k).ToLocalChecked());
      table->data_.columns.emplace_back(*name, name.length());
    }
    Local<Array> rows = info[1].As<Array>();
    for (uint32_t k = 0; k < rows->Length(); ++k) {
      Local<Array> row = rows->Get(context, k).ToLocalChecked().As<Array>();
      std::vector<Cell>& cells = table->data_.rows.emplace_back();
      for (uint32_t c = 0; c < columns->Length(); ++c) {
        cells.push_back(FromJs(isolate, row->Get(context, c).ToLocalChecked()));
      }
    }
#ifdef HAS_DICTIONARY_TEMPLATE
    std::vector<std::string_view> names(table->data_.columns.begin(), table->data_.columns.end());
    Local<v8::DictionaryTemplate> shape =
        v8::DictionaryTemplate::New(isolate, v8::MemorySpan<const std::string_view>(names.data(), names.size()));
    table->template_.Reset(isolate, shape);
#endif
    table->sample_.Reset(isolate, Object::New(isolate));
    table->Wrap(info.This());
    info.GetReturnValue().Set(info.This());
  }

  static Table* Of(const Arguments& info) { return Unwrap<Table>(info.This()); }

  // The way from the object to what it wraps.
  static void DoUnwrap(const Arguments& info) {
    info.GetReturnValue().Set(static_cast<int32_t>(Of(info)->data_.columns.size()));
  }

  // The first cell of the next row, as a string.
  static void DoText(const Arguments& info) {
    info.GetReturnValue().Set(Text(info.GetIsolate(), Of(info)->Next().front().bytes));
  }

  // The first cell of the next row, as a Buffer of its own.
  static void DoBlob(const Arguments& info) {
    const std::string& bytes = Of(info)->Next().front().bytes;
    info.GetReturnValue().Set(
        node::Buffer::Copy(info.GetIsolate(), bytes.data(), bytes.size()).ToLocalChecked());
  }

  // All rows: an object each, filled a property at a time under a name looked up for it.
  static void DoRowSet(const Arguments& info) {
    Table* table = Of(info);
    Isolate* isolate = info.GetIsolate();
    Local<Context> context = isolate->GetCurrentContext();
    Local<Array> result = Array::New(isolate, 0);
    uint32_t count = 0;
    for (const std::vector<Cell>& cells : table->data_.rows) {
      Local<Object> row = Object::New(isolate);
      for (size_t c = 0; c < cells.size(); ++c) {
        row->Set(context, Interned(isolate, table->data_.columns[c]), ToJs(isolate, cells[c])).FromJust();
      }
      result->Set(context, count++, row).FromJust();
    }
    info.GetReturnValue().Set(result);
  }

  // All rows: names looked up once a call, then an object each from names and values at once.
  static void DoRowBulk(const Arguments& info) {
    Table* table = Of(info);
    Isolate* isolate = info.GetIsolate();
    HANDLES(Name, names, isolate);
    names.reserve(table->data_.columns.size());
    for (const std::string& column : table->data_.columns) names.emplace_back(Interned(isolate, column));
    HANDLES(Value, rows, isolate);
    rows.reserve(8);
    for (const std::vector<Cell>& cells : table->data_.rows) {
      HANDLES(Value, values, isolate);
      values.reserve(cells.size());
      for (const Cell& cell : cells) values.emplace_back(ToJs(isolate, cell));
      rows.emplace_back(Object::New(isolate, PROTOTYPE_OF(Object::New(isolate)), names.data(), values.data(),
                                    values.size()));
    }
    info.GetReturnValue().Set(Array::New(isolate, rows.data(), rows.size()));
  }

  // All rows: an object each from a shape that was made once.
  static void DoRowTemplate(const Arguments& info) {
    Table* table = Of(info);
    Isolate* isolate = info.GetIsolate();
#ifdef HAS_DICTIONARY_TEMPLATE
    Local<Context> context = isolate->GetCurrentContext();
    Local<v8::DictionaryTemplate> shape = table->template_.Get(isolate);
    HANDLES(Value, rows, isolate);
    rows.reserve(8);
    std::vector<v8::MaybeLocal<Value>> values;
    for (const std::vector<Cell>& cells : table->data_.rows) {
      values.clear();
      for (const Cell& cell : cells) values.emplace_back(ToJs(isolate, cell));
      rows.emplace_back(
          shape->NewInstance(context, v8::MemorySpan<v8::MaybeLocal<Value>>(values.data(), values.size())));
    }
    info.GetReturnValue().Set(Array::New(isolate, rows.data(), rows.size()));
#else
    static_cast<void>(table);
    isolate->ThrowException(v8::Exception::Error(Text(isolate, "the V8 of this Node has no templates for rows")));
#endif
  }

  // An array of n rows that are there already.
  static void DoArrayOfRows(const Arguments& info) {
    Isolate* isolate = info.GetIsolate();
    int32_t count = info[0].As<v8::Int32>()->Value();
    Local<Object> row = Of(info)->sample_.Get(isolate);
    HANDLES(Value, rows, isolate);
    rows.reserve(8);
    for (int32_t k = 0; k < count; ++k) rows.emplace_back(row);
    info.GetReturnValue().Set(Array::New(isolate, rows.data(), rows.size()));
  }

  // One call of a JavaScript function with a number, as for a function of SQL written in JavaScript.
  static void DoCallback(const Arguments& info) {
    Isolate* isolate = info.GetIsolate();
    HandleScope scope(isolate);
    const Cell& cell = Of(info)->Next().front();
    Local<Value> arguments[1] = {ToJs(isolate, cell)};
    v8::MaybeLocal<Value> result = info[0].As<Function>()->Call(isolate->GetCurrentContext(),
                                                                v8::Undefined(isolate), 1, arguments);
    if (result.IsEmpty()) return;
    Local<Value> value = result.ToLocalChecked();
    info.GetReturnValue().Set(value->IsNumber() ? value.As<Number>()->Value() : -1.0);
  }

  const std::vector<Cell>& Next() {
    const std::vector<Cell>& row = data_.rows[next_];
    if (++next_ == data_.rows.size()) next_ = 0;
    return row;
  }

  probe::Table data_;
  size_t next_ = 0;
  v8::Global<Object> sample_;
#ifdef HAS_DICTIONARY_TEMPLATE
  v8::Global<v8::DictionaryTemplate> template_;
#endif
};

void Noop(const Arguments&) {}

// What a binder asks of each number that is to become a parameter.
void Args(const Arguments& info) {
  double sum = 0;
  for (int k = 0; k < info.Length(); ++k) {
    Local<Value> value = info[k];
    if (value->IsArray()) continue;
    if (value->IsObject() && !node::Buffer::HasInstance(value)) continue;
    if (value->IsNumber()) sum += value.As<Number>()->Value();
  }
  info.GetReturnValue().Set(sum);
}

void Utf8(const Arguments& info) {
  String::Utf8Value utf8(info.GetIsolate(), info[0].As<String>());
  info.GetReturnValue().Set(static_cast<int32_t>(utf8.length()));
}

// CPU time that the main thread has spent in collections so far; a pause also holds its waiting for other threads.
// One isolate a process loads this.
int64_t collecting_since_ns = 0;
int64_t collected_ns = 0;
int collections_open = 0;

void CollectionBegins(Isolate*, v8::GCType, v8::GCCallbackFlags, void*) {
  if (collections_open++ == 0) collecting_since_ns = probe::ReadThreadCpuNs();
}

void CollectionEnds(Isolate*, v8::GCType, v8::GCCallbackFlags, void*) {
  if (--collections_open == 0) collected_ns += probe::ReadThreadCpuNs() - collecting_since_ns;
}

void ThreadTimes(const Arguments& info) {
  if (!info[0]->IsFloat64Array()) return;
  Local<v8::Float64Array> target = info[0].As<v8::Float64Array>();
  if (target->Length() < 3) return;
  char* start = static_cast<char*>(target->Buffer()->Data()) + target->ByteOffset();
  probe::ThreadTimes times = probe::ReadThreadTimes();
  reinterpret_cast<double*>(start)[0] = times.user_us;
  reinterpret_cast<double*>(start)[1] = times.system_us;
  reinterpret_cast<double*>(start)[2] = static_cast<double>(collected_ns) / 1000;
}

}  // namespace

NODE_MODULE_INIT(/* exports, module, context */) {
  Isolate* isolate = Isolate::GetCurrent();
  HandleScope scope(isolate);
  NODE_SET_METHOD(exports, "noop", Noop);
  NODE_SET_METHOD(exports, "args", Args);
  NODE_SET_METHOD(exports, "utf8", Utf8);
  NODE_SET_METHOD(exports, "threadTimes", ThreadTimes);
  isolate->AddGCPrologueCallback(CollectionBegins, nullptr, v8::kGCTypeAll);
  isolate->AddGCEpilogueCallback(CollectionEnds, nullptr, v8::kGCTypeAll);
  exports->Set(context, Interned(isolate, "Table"), Table::Init(isolate, context)).FromJust();
}
