// The primitives of the boundary between JavaScript and C++, through Node-API: the work of v8_dialect.cc, done as an
// addon on Node-API does it. It has no way to intern a name, and none to make an object from names and values that
// JavaScript's own function for it would not beat: the row template is such a function.
#include <node_api.h>

#include <algorithm>
#include <vector>

#include "cells.h"

namespace {

using probe::Cell;
using probe::Kind;

constexpr size_t kArguments = 6;
constexpr size_t kBatch = 1024;
constexpr napi_property_attributes kPlain =
    static_cast<napi_property_attributes>(napi_writable | napi_enumerable | napi_configurable);

napi_value Undefined(napi_env env) {
  napi_value value;
  napi_get_undefined(env, &value);
  return value;
}

napi_value Text(napi_env env, const std::string& text) {
  napi_value value;
  napi_create_string_utf8(env, text.data(), text.size(), &value);
  return value;
}

napi_value Double(napi_env env, double number) {
  napi_value value;
  napi_create_double(env, number, &value);
  return value;
}

napi_value ToJs(napi_env env, const Cell& cell) {
  napi_value value;
  switch (cell.kind) {
    case Kind::kInteger:
      return Double(env, static_cast<double>(cell.integer));
    case Kind::kFloat:
      return Double(env, cell.number);
    case Kind::kText:
      return Text(env, cell.bytes);
    case Kind::kBlob:
      napi_create_buffer_copy(env, cell.bytes.size(), cell.bytes.data(), nullptr, &value);
      return value;
    case Kind::kNull:
      break;
  }
  napi_get_null(env, &value);
  return value;
}

napi_valuetype TypeOf(napi_env env, napi_value value) {
  napi_valuetype type = napi_undefined;
  napi_typeof(env, value, &type);
  return type;
}

// Asked for its length first, then copied: what a C++ string takes.
std::string Utf8Of(napi_env env, napi_value value) {
  size_t length = 0;
  napi_get_value_string_utf8(env, value, nullptr, 0, &length);
  std::string text;
  text.reserve(length + 1);
  text.resize(length);
  napi_get_value_string_utf8(env, value, text.data(), text.capacity(), nullptr);
  return text;
}

Cell FromJs(napi_env env, napi_value value) {
  Cell cell;
  bool is_buffer = false;
  napi_is_buffer(env, value, &is_buffer);
  if (TypeOf(env, value) == napi_number) {
    double number = 0;
    napi_get_value_double(env, value, &number);
    cell.kind = number == static_cast<double>(static_cast<int64_t>(number)) ? Kind::kInteger : Kind::kFloat;
    cell.integer = static_cast<int64_t>(number);
    cell.number = number;
  } else if (TypeOf(env, value) == napi_string) {
    cell.kind = Kind::kText;
    cell.bytes = Utf8Of(env, value);
  } else if (is_buffer) {
    void* data = nullptr;
    size_t length = 0;
    napi_get_buffer_info(env, value, &data, &length);
    cell.kind = Kind::kBlob;
    cell.bytes.assign(static_cast<char*>(data), length);
  }
  return cell;
}

struct Call {
  Call(napi_env env, napi_callback_info info) { napi_get_cb_info(env, info, &count, arguments, &self, nullptr); }
  size_t count = kArguments;
  napi_value arguments[kArguments];
  napi_value self;
};

napi_value CallFunction(napi_env env, napi_ref function, size_t count, const napi_value* arguments) {
  napi_value callee;
  napi_value result = nullptr;
  napi_get_reference_value(env, function, &callee);
  napi_call_function(env, Undefined(env), callee, count, arguments, &result);
  return result;
}

const napi_type_tag kTag = {0x6b1f0c5c3a7e4d21, 0x9d2e8f4610b7c553};

class Table {
 public:
  static napi_value Init(napi_env env) {
    napi_property_descriptor methods[] = {
        Method("unwrap", DoUnwrap),   Method("text", DoText),
        Method("blob", DoBlob),       Method("rowSet", DoRowSet),
        Method("rowBulk", DoRowBulk), Method("rowTemplate", DoRowTemplate),
        Method("arrayOfRows", DoArrayOfRows), Method("callback", DoCallback),
    };
    napi_value constructor;
    napi_define_class(env, "Table", NAPI_AUTO_LENGTH, New, nullptr, sizeof(methods) / sizeof(methods[0]), methods,
                      &constructor);
    return constructor;
  }

 private:
  static napi_property_descriptor Method(const char* name, napi_callback function) {
    napi_property_descriptor method = {};
    method.utf8name = name;
    method.method = function;
    method.attributes = kPlain;
    return method;
  }

  // new Table(columns, rows, makeRow, makeArray, appendToArray)
  static napi_value New(napi_env env, napi_callback_info info) {
    Call call(env, info);
    if (call.count < 5) {
      napi_throw_type_error(env, nullptr, "new Table(columns, rows, makeRow, makeArray, append) takes five arguments");
      return nullptr;
    }
    Table* table = new Table();
    uint32_t columns = 0;
    napi_get_array_length(env, call.arguments[0], &columns);
    for (uint32_t k = 0; k < columns; ++k) {
      napi_value name;
      napi_get_element(env, call.arguments[0], k, &name);
      table->data_.columns.push_back(Utf8Of(env, name));
    }
    uint32_t rows = 0;
    napi_get_array_length(env, call.arguments[1], &rows);
    for (uint32_t k = 0; k < rows; ++k) {
      napi_value row;
      napi_get_element(env, call.arguments[1], k, &row);
      std::vector<Cell>& cells = table->data_.rows.emplace_back();
      for (uint32_t c = 0; c < columns; ++c) {
        napi_value value;
        napi_get_element(env, row, c, &value);
        cells.push_back(FromJs(env, value));
      }
    }
    napi_value sample;
    napi_create_object(env, &sample);
    napi_create_reference(env, sample, 1, &table->sample_);
    napi_create_reference(env, call.arguments[2], 1, &table->make_row_);
    napi_create_reference(env, call.arguments[3], 1, &table->make_array_);
    napi_create_reference(env, call.arguments[4], 1, &table->append_);
    napi_type_tag_object(env, call.self, &kTag);
    napi_wrap(env, call.self, table, Delete, nullptr, nullptr);
    return call.self;
  }

  static void Delete(napi_env, void* table, void*) { delete static_cast<Table*>(table); }

  static Table* Of(napi_env env, const Call& call) {
    bool is_table = false;
    void* table = nullptr;
    napi_check_object_type_tag(env, call.self, &kTag, &is_table);
    if (is_table) napi_unwrap(env, call.self, &table);
    return static_cast<Table*>(table);
  }

  static napi_value DoUnwrap(napi_env env, napi_callback_info info) {
    Call call(env, info);
    return Double(env, static_cast<double>(Of(env, call)->data_.columns.size()));
  }

  static napi_value DoText(napi_env env, napi_callback_info info) {
    Call call(env, info);
    return Text(env, Of(env, call)->Next().front().bytes);
  }

  static napi_value DoBlob(napi_env env, napi_callback_info info) {
    Call call(env, info);
    const std::string& bytes = Of(env, call)->Next().front().bytes;
    napi_value value;
    napi_create_buffer_copy(env, bytes.size(), bytes.data(), nullptr, &value);
    return value;
  }

  static napi_value DoRowSet(napi_env env, napi_callback_info info) {
    Call call(env, info);
    Table* table = Of(env, call);
    napi_value result;
    napi_create_array(env, &result);
    uint32_t count = 0;
    for (const std::vector<Cell>& cells : table->data_.rows) {
      napi_value row;
      napi_create_object(env, &row);
      for (size_t c = 0; c < cells.size(); ++c) {
        napi_set_property(env, row, Text(env, table->data_.columns[c]), ToJs(env, cells[c]));
      }
      napi_set_element(env, result, count++, row);
    }
    return result;
  }

  static napi_value DoRowBulk(napi_env env, napi_callback_info info) {
    Call call(env, info);
    Table* table = Of(env, call);
    std::vector<napi_property_descriptor> properties(table->data_.columns.size());
    for (size_t c = 0; c < properties.size(); ++c) {
      properties[c] = {};
      properties[c].name = Text(env, table->data_.columns[c]);
      properties[c].attributes = kPlain;
    }
    std::vector<napi_value> rows;
    rows.reserve(8);
    for (const std::vector<Cell>& cells : table->data_.rows) {
      for (size_t c = 0; c < cells.size(); ++c) properties[c].value = ToJs(env, cells[c]);
      napi_value row;
      napi_create_object(env, &row);
      napi_define_properties(env, row, properties.size(), properties.data());
      rows.push_back(row);
    }
    return table->ArrayOf(env, rows);
  }

  static napi_value DoRowTemplate(napi_env env, napi_callback_info info) {
    Call call(env, info);
    Table* table = Of(env, call);
    std::vector<napi_value> rows;
    rows.reserve(8);
    std::vector<napi_value> values(table->data_.columns.size());
    for (const std::vector<Cell>& cells : table->data_.rows) {
      for (size_t c = 0; c < cells.size(); ++c) values[c] = ToJs(env, cells[c]);
      rows.push_back(CallFunction(env, table->make_row_, values.size(), values.data()));
    }
    return table->ArrayOf(env, rows);
  }

  static napi_value DoArrayOfRows(napi_env env, napi_callback_info info) {
    Call call(env, info);
    Table* table = Of(env, call);
    int32_t count = 0;
    napi_get_value_int32(env, call.arguments[0], &count);
    napi_value row;
    napi_get_reference_value(env, table->sample_, &row);
    std::vector<napi_value> rows;
    rows.reserve(8);
    for (int32_t k = 0; k < count; ++k) rows.push_back(row);
    return table->ArrayOf(env, rows);
  }

  static napi_value DoCallback(napi_env env, napi_callback_info info) {
    Call call(env, info);
    Table* table = Of(env, call);
    napi_handle_scope scope;
    napi_open_handle_scope(env, &scope);
    napi_value arguments[1] = {ToJs(env, table->Next().front())};
    napi_value result = nullptr;
    bool failed = false;
    double number = -1;
    napi_call_function(env, Undefined(env), call.arguments[0], 1, arguments, &result);
    napi_is_exception_pending(env, &failed);
    if (!failed && TypeOf(env, result) == napi_number) napi_get_value_double(env, result, &number);
    napi_close_handle_scope(env, scope);
    return failed ? nullptr : Double(env, number);
  }

  // An array by a JavaScript function that collects its arguments, the rest of a long one appended in batches.
  napi_value ArrayOf(napi_env env, const std::vector<napi_value>& rows) {
    size_t first = std::min(rows.size(), kBatch);
    napi_value result = CallFunction(env, make_array_, first, rows.data());
    std::vector<napi_value> arguments;
    for (size_t from = first; from < rows.size(); from += kBatch) {
      size_t count = std::min(rows.size() - from, kBatch);
      arguments.assign(1, result);
      arguments.insert(arguments.end(), rows.begin() + from, rows.begin() + from + count);
      CallFunction(env, append_, arguments.size(), arguments.data());
    }
    return result;
  }

  const std::vector<Cell>& Next() {
    const std::vector<Cell>& row = data_.rows[next_];
    if (++next_ == data_.rows.size()) next_ = 0;
    return row;
  }

  probe::Table data_;
  size_t next_ = 0;
  napi_ref sample_ = nullptr;
  napi_ref make_row_ = nullptr;
  napi_ref make_array_ = nullptr;
  napi_ref append_ = nullptr;
};

napi_value Noop(napi_env, napi_callback_info) { return nullptr; }

napi_value Args(napi_env env, napi_callback_info info) {
  Call call(env, info);
  double sum = 0;
  for (size_t k = 0; k < call.count; ++k) {
    napi_value value = call.arguments[k];
    bool is_array = false;
    napi_is_array(env, value, &is_array);
    if (is_array) continue;
    napi_valuetype type = TypeOf(env, value);
    if (type == napi_object || type == napi_function) continue;
    double number = 0;
    if (type == napi_number) napi_get_value_double(env, value, &number);
    sum += number;
  }
  return Double(env, sum);
}

napi_value Utf8(napi_env env, napi_callback_info info) {
  Call call(env, info);
  std::string text = Utf8Of(env, call.arguments[0]);
  return Double(env, static_cast<double>(text.size()));
}

napi_value ThreadTimes(napi_env env, napi_callback_info info) {
  Call call(env, info);
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  if (napi_get_typedarray_info(env, call.arguments[0], &type, &length, &data, nullptr, nullptr) != napi_ok ||
      type != napi_float64_array || length < 2) {
    return nullptr;
  }
  probe::ThreadTimes times = probe::ReadThreadTimes();
  static_cast<double*>(data)[0] = times.user_us;
  static_cast<double*>(data)[1] = times.system_us;
  return nullptr;
}

void Export(napi_env env, napi_value exports, const char* name, napi_callback function) {
  napi_value value;
  napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value);
  napi_set_named_property(env, exports, name, value);
}

}  // namespace

NAPI_MODULE_INIT() {
  Export(env, exports, "noop", Noop);
  Export(env, exports, "args", Args);
  Export(env, exports, "utf8", Utf8);
  Export(env, exports, "threadTimes", ThreadTimes);
  napi_set_named_property(env, exports, "Table", Table::Init(env));
  return exports;
}
