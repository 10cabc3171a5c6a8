// What a native addon does with a string argument: String::Utf8Value, which is Utf8Length and WriteUtf8 (WriteUtf8V2
// where V8 has it). Then what the C library does: a copy of the bytes, whose characters are counted.
#include <node.h>

#include <cstdlib>
#include <cstring>

static int32_t CountInCopy(const char* text, size_t length) {
  char* copy = static_cast<char*>(malloc(length + 1));
  memcpy(copy, text, length);
  copy[length] = 0;
  int32_t count = 0;
  for (const char* at = copy; *at != 0; ++count) {
    if (static_cast<unsigned char>(*at++) >= 0xc0) {
      while ((*at & 0xc0) == 0x80) ++at;
    }
  }
  free(copy);
  return count;
}

static void Convert(const v8::FunctionCallbackInfo<v8::Value>& info) {
  v8::Isolate* isolate = info.GetIsolate();
  v8::String::Utf8Value utf8(isolate, info[0].As<v8::String>());
  info.GetReturnValue().Set(CountInCopy(*utf8, utf8.length()));
}

NODE_MODULE_INIT(/* exports, module, context */) {
  (void)module;
  v8::Isolate* isolate = v8::Isolate::GetCurrent();
  v8::Local<v8::Function> convert = v8::Function::New(context, Convert).ToLocalChecked();
  v8::Local<v8::String> name = v8::String::NewFromUtf8(isolate, "convert").ToLocalChecked();
  exports->Set(context, name, convert).Check();
}
