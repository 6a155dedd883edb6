// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_TUNING_JSON_HPP
#define KOKKOSNN_SRC_PLAN_TUNING_JSON_HPP

#include <cctype>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// As much of JSON (RFC 8259) as a tuning file is made of: objects, arrays, strings, integers. A library that is linked
// into other programs is not to bring a JSON library along for one small file of its own.

namespace KokkosNN::Impl {

class Json {
 public:
  using Object = std::vector<std::pair<std::string, Json>>;
  using Array  = std::vector<Json>;

  Json() = default;
  explicit Json(std::int64_t number) : m_value(number) {}
  explicit Json(std::string text) : m_value(std::move(text)) {}
  explicit Json(const char* text) : m_value(std::string(text)) {}
  explicit Json(Array items) : m_value(std::move(items)) {}
  static Json object(Object members) {
    Json json;
    json.m_value = std::move(members);
    return json;
  }

  std::int64_t number() const { return get<std::int64_t>("a number"); }
  const std::string& text() const { return get<std::string>("a string"); }
  const Array& items() const { return get<Array>("an array"); }
  const Json& operator[](std::string_view name) const {
    for (const auto& [key, value] : get<Object>("an object")) {
      if (key == name) return value;
    }
    throw std::runtime_error("'" + std::string(name) + "' is missing");
  }

  /// \throws std::runtime_error with the line where the text is no JSON
  static Json parse(std::string_view text) { return Parser{text}.document(); }

  /// The text of it, a line for each object that holds no array.
  std::string text_of(int depth = 0) const {
    if (const auto* number = std::get_if<std::int64_t>(&m_value)) return std::to_string(*number);
    if (const auto* text = std::get_if<std::string>(&m_value)) return quoted(*text);
    const std::string margin(static_cast<std::size_t>(2 * depth + 2), ' ');
    std::string out;
    if (const auto* items = std::get_if<Array>(&m_value)) {
      for (const Json& item : *items) out += (out.empty() ? "" : ",") + ("\n" + margin) + item.text_of(depth + 1);
      return "[" + out + "]";
    }
    for (const auto& [key, value] : std::get<Object>(m_value)) {
      out += (out.empty() ? "" : ", ") + quoted(key) + ": " + value.text_of(depth + 1);
    }
    return "{" + out + "}";
  }

 private:
  struct Parser {
    std::string_view text;
    std::size_t at = 0;

    Json document() {
      Json json = value(0);
      if (next() != '\0') fail("something follows the end");
      return json;
    }

    [[noreturn]] void fail(const std::string& why) const {
      int line = 1;
      for (const char c : text.substr(0, at)) line += c == '\n';
      throw std::runtime_error("line " + std::to_string(line) + ": " + why);
    }

    /// The next character that is no space; 0 at the end.
    char next() {
      while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
      return at < text.size() ? text[at] : '\0';
    }
    bool takes(char c) {
      if (next() != c) return false;
      ++at;
      return true;
    }
    void expect(char c) {
      if (!takes(c)) fail(std::string("'") + c + "' is missing");
    }

    Json value(int depth) {
      if (depth > 8) fail("nested too deeply");
      const char c = next();
      if (c == '{') return members(depth);
      if (c == '[') return array(depth);
      if (c == '"') return Json(string());
      std::int64_t number     = 0;
      const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
      if (error != std::errc{}) fail("no value that a tuning file has");
      at = static_cast<std::size_t>(end - text.data());
      return Json(number);
    }

    Json members(int depth) {
      Object all;
      expect('{');
      while (!takes('}')) {
        if (!all.empty()) expect(',');
        if (next() != '"') fail("a name is missing");
        std::string name = string();
        expect(':');
        all.emplace_back(std::move(name), value(depth + 1));
      }
      return object(std::move(all));
    }

    Json array(int depth) {
      Array all;
      expect('[');
      while (!takes(']')) {
        if (!all.empty()) expect(',');
        all.push_back(value(depth + 1));
      }
      return Json(std::move(all));
    }

    std::string string() {
      std::string out;
      expect('"');
      for (; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && ++at == text.size()) break;
        out += text[at];
      }
      if (at == text.size()) fail("a string does not end");
      ++at;
      return out;
    }
  };

  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out + '"';
  }

  template <class T>
  const T& get(const char* what) const {
    if (const T* value = std::get_if<T>(&m_value)) return *value;
    throw std::runtime_error(std::string(what) + " was expected");
  }

  std::variant<std::int64_t, std::string, Array, Object> m_value;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_TUNING_JSON_HPP
