// Hands 50 rows of 4 columns to JavaScript as a native addon for SQLite does, without SQLite. BULK chooses how a row
// is made: from all names and values at once (names looked up once a call), or property by property.
#include <node.h>

#include <cstdio>
#include <string>
#include <vector>

#if NODE_MAJOR_VERSION >= 24
#define PROTOTYPE_OF(object) ((object)->GetPrototypeV2())
#else
#define PROTOTYPE_OF(object) ((object)->GetPrototype())
#endif
#define BULK (@@BULK@@)

using v8::Local;
struct Row { std::string texts[2]; double numbers[2]; };
static std::vector<Row> rows;
static const char* const columns[] = {"id", "subject", "sender", "date"};

static Local<v8::String> Text(v8::Isolate* isolate, const std::string& text, v8::NewStringType type) {
  return v8::String::NewFromUtf8(isolate, text.data(), type, text.size()).ToLocalChecked();
}
static Local<v8::Value> ValueOf(v8::Isolate* isolate, const Row& row, int column) {
  if (column == 0 || column == 3) return v8::Number::New(isolate, row.numbers[column / 3]);
  return Text(isolate, row.texts[column - 1], v8::NewStringType::kNormal);
}
static Local<v8::String> Name(v8::Isolate* isolate, int column) {
  return Text(isolate, columns[column], v8::NewStringType::kInternalized);
}
static void All(const v8::FunctionCallbackInfo<v8::Value>& info) {
  v8::Isolate* isolate = info.GetIsolate();
  Local<v8::Context> context = isolate->GetCurrentContext();
  Local<v8::Array> result = v8::Array::New(isolate, rows.size());
#if BULK
  Local<v8::Name> names[] = {Name(isolate, 0), Name(isolate, 1), Name(isolate, 2), Name(isolate, 3)};
#endif
  for (size_t k = 0; k < rows.size(); ++k) {
#if BULK
    Local<v8::Value> values[4];
    for (int c = 0; c < 4; ++c) values[c] = ValueOf(isolate, rows[k], c);
    Local<v8::Object> row = v8::Object::New(isolate, PROTOTYPE_OF(v8::Object::New(isolate)), names, values, 4);
#else
    Local<v8::Object> row = v8::Object::New(isolate);
    for (int c = 0; c < 4; ++c) row->Set(context, Name(isolate, c), ValueOf(isolate, rows[k], c)).Check();
#endif
    result->Set(context, k, row).Check();
  }
  info.GetReturnValue().Set(result);
}
NODE_MODULE_INIT(/* exports, module, context */) {
  (void)module;
  v8::Isolate* isolate = v8::Isolate::GetCurrent();
  for (int k = 0; k < 50; ++k) {
    std::string n = std::to_string(k);
    rows.push_back({{"Quarterly report, draft number " + n, "Grace Hopper <grace" + n + "@host.example>"}, {k + 1., 1.7e9 + k}});
  }
  exports->Set(context, Name(isolate, 0), v8::Function::New(context, All).ToLocalChecked()).Check();
}
