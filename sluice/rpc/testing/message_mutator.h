// Changes a message a little, keeping it a message: so that fuzzing gets past
// the parser and to what the fields mean.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>

namespace sluice {

class MessageMutator {
 public:
  // `words` are tried where text is expected.
  MessageMutator(unsigned seed, std::span<const std::string> words)
      : random_(seed), words_(words) {}

  // Changes one field somewhere in `message`.
  void Mutate(google::protobuf::Message* message) {
    using google::protobuf::FieldDescriptor;
    const google::protobuf::Descriptor* type = message->GetDescriptor();
    if (type->field_count() == 0) return;
    const google::protobuf::Reflection* reflection = message->GetReflection();
    const FieldDescriptor* field = type->field(Below(type->field_count()));
    if (field->is_repeated()) {
      MutateList(message, reflection, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      // Mostly what is there already; else a message grows fields nobody sets.
      if (reflection->HasField(*message, field) || Below(4) == 0) {
        Mutate(reflection->MutableMessage(message, field));
      }
    } else if (Below(8) == 0) {
      reflection->ClearField(message, field);
    } else {
      SetScalar(message, reflection, field);
    }
  }

 private:
  using Message = google::protobuf::Message;
  using Reflection = google::protobuf::Reflection;
  using Field = google::protobuf::FieldDescriptor;

  int Below(int n) {
    return static_cast<int>(random_() % static_cast<unsigned>(n));
  }
  const std::string& Word() {
    return words_[Below(static_cast<int>(words_.size()))];
  }
  int64_t Integer() {
    static constexpr int64_t kSpecial[] = {0,         1,
                                           -1,        2,
                                           3,         7,
                                           127,       255,
                                           1 << 16,   INT32_MAX,
                                           INT32_MIN, INT64_MAX,
                                           INT64_MIN, int64_t{1} << 40};
    if (Below(3) == 0) return Below(10);
    return kSpecial[Below(std::size(kSpecial))];
  }
  std::string Text(const std::string& old) {
    if (old.empty() || Below(2) == 0) return Word();
    std::string text = old;
    switch (Below(4)) {
      case 0:
        text[Below(static_cast<int>(text.size()))] =
            static_cast<char>(' ' + Below(95));
        break;
      case 1:
        text.resize(Below(static_cast<int>(text.size())));
        break;
      case 2:
        text += Word();
        break;
      default:
        text.insert(Below(static_cast<int>(text.size())), 1,
                    ":^/;@_"[Below(6)]);
    }
    return text;
  }

  void MutateList(Message* message, const Reflection* reflection,
                  const Field* field) {
    const int size = reflection->FieldSize(*message, field);
    const int what = Below(8);
    if (what == 0 && size > 0) {
      reflection->RemoveLast(message, field);
    } else if (what == 1 && size > 1) {
      reflection->SwapElements(message, field, Below(size), Below(size));
    } else if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      if (size == 0 && Below(3) != 0) return;
      if (size == 0 || what == 2) {
        Message* added = reflection->AddMessage(message, field);
        if (size > 0) {
          added->CopyFrom(
              reflection->GetRepeatedMessage(*message, field, Below(size)));
        }
        Mutate(added);
      } else {
        Mutate(reflection->MutableRepeatedMessage(message, field, Below(size)));
      }
    } else if (field->cpp_type() == Field::CPPTYPE_STRING) {
      if (size == 0 || what == 2) {
        reflection->AddString(message, field, Word());
      } else {
        const int at = Below(size);
        reflection->SetRepeatedString(
            message, field, at,
            Text(reflection->GetRepeatedString(*message, field, at)));
      }
    } else {
      AddScalar(message, reflection, field);
    }
  }

  void SetScalar(Message* message, const Reflection* r, const Field* field) {
    switch (field->cpp_type()) {
      case Field::CPPTYPE_STRING:
        r->SetString(message, field, Text(r->GetString(*message, field)));
        break;
      case Field::CPPTYPE_BOOL:
        r->SetBool(message, field, !r->GetBool(*message, field));
        break;
      case Field::CPPTYPE_ENUM:
        r->SetEnumValue(message, field, Below(140) - 2);
        break;
      case Field::CPPTYPE_INT32:
        r->SetInt32(message, field, static_cast<int32_t>(Integer()));
        break;
      case Field::CPPTYPE_UINT32:
        r->SetUInt32(message, field, static_cast<uint32_t>(Integer()));
        break;
      case Field::CPPTYPE_INT64:
        r->SetInt64(message, field, Integer());
        break;
      case Field::CPPTYPE_UINT64:
        r->SetUInt64(message, field, static_cast<uint64_t>(Integer()));
        break;
      case Field::CPPTYPE_FLOAT:
        r->SetFloat(message, field, static_cast<float>(Integer()));
        break;
      case Field::CPPTYPE_DOUBLE:
        r->SetDouble(message, field, static_cast<double>(Integer()));
        break;
      case Field::CPPTYPE_MESSAGE:
        break;
    }
  }

  void AddScalar(Message* message, const Reflection* r, const Field* field) {
    switch (field->cpp_type()) {
      case Field::CPPTYPE_BOOL:
        r->AddBool(message, field, Below(2) == 0);
        break;
      case Field::CPPTYPE_ENUM:
        r->AddEnumValue(message, field, Below(30));
        break;
      case Field::CPPTYPE_INT32:
        r->AddInt32(message, field, static_cast<int32_t>(Integer()));
        break;
      case Field::CPPTYPE_UINT32:
        r->AddUInt32(message, field, static_cast<uint32_t>(Integer()));
        break;
      case Field::CPPTYPE_INT64:
        r->AddInt64(message, field, Integer());
        break;
      case Field::CPPTYPE_UINT64:
        r->AddUInt64(message, field, static_cast<uint64_t>(Integer()));
        break;
      case Field::CPPTYPE_FLOAT:
        r->AddFloat(message, field, static_cast<float>(Integer()));
        break;
      case Field::CPPTYPE_DOUBLE:
        r->AddDouble(message, field, static_cast<double>(Integer()));
        break;
      default:
        break;
    }
  }

  std::mt19937 random_;
  const std::span<const std::string> words_;
};

}  // namespace sluice
