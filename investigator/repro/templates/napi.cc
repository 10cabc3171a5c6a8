// What an addon on Node-API does with a string argument: it asks for its length in UTF-8, then for the bytes
// (Napi::String::Utf8Value). Then what the C library does: a copy of the bytes, whose characters are counted.
#include <node_api.h>

#include <cstdlib>
#include <cstring>
#include <string>

@@COUNT@@

static napi_value Convert(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value text;
  napi_get_cb_info(env, info, &count, &text, nullptr, nullptr);
  size_t length = 0;
  napi_get_value_string_utf8(env, text, nullptr, 0, &length);
  std::string utf8;
  utf8.resize(length);
  napi_get_value_string_utf8(env, text, &utf8[0], length + 1, nullptr);
  napi_value result;
  napi_create_int32(env, CountInCopy(utf8.c_str(), length), &result);
  return result;
}

NAPI_MODULE_INIT(/* env, exports */) {
  napi_value convert;
  napi_create_function(env, "convert", NAPI_AUTO_LENGTH, Convert, nullptr, &convert);
  napi_set_named_property(env, exports, "convert", convert);
  return exports;
}
