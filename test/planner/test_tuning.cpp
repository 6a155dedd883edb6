// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/devices.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// The tuning file: what the planner makes of it, and what becomes of a file that is no good.

namespace KokkosNNTest {

using namespace KokkosNN;

/// Sets an environment variable, or unsets it, until it goes.
class Variable {
 public:
  Variable(const char* name, const char* value) : m_name(name) {
    const char* old = std::getenv(name);
    m_was_set       = old != nullptr;
    if (m_was_set) m_old = old;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Variable() { m_was_set ? setenv(m_name, m_old.c_str(), 1) : unsetenv(m_name); }

 private:
  const char* m_name;
  bool m_was_set;
  std::string m_old;
};

/// A file in a folder of its own, gone when the test ends.
class TuningFile : public ::testing::Test {
 protected:
  TuningFile()
      : m_folder(std::filesystem::temp_directory_path() / ("kokkosnn_tuning_" + std::to_string(getpid()))),
        path(m_folder / "deeper" / "tuning.json") {}
  ~TuningFile() override { std::filesystem::remove_all(m_folder); }

  void write(const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  std::string text() const {
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
  }
  /// The warning about the file for device "A".
  std::string warning() const {
    std::string warning;
    EXPECT_EQ(read_tuning(path, "A", warning), TuningTable{});
    return warning;
  }

 private:
  std::filesystem::path m_folder;

 protected:
  std::string path;
};

TuningTable table_of(std::int64_t cols, RowStrategy strategy = RowStrategy::team_online) {
  return {{{.min_rows = 100, .min_cols = cols, .max_cols = 2 * cols, .plan = {.strategy = strategy}}}};
}

TEST_F(TuningFile, GivesBackWhatWasWritten) {
  TuningTable table = table_of(16);
  table.entries.push_back({.op       = RowOperator::logsumexp,
                           .x_type   = ElementType::bf16,
                           .y_type   = ElementType::f32,
                           .min_rows = 7,
                           .min_cols = 33,
                           .max_cols = 5000000000,
                           .plan = {.strategy = RowStrategy::vector_lanes, .packs_per_thread = 4, .team_size = 128}});

  write_tuning(path, "A \"quoted\" \\ device", table);

  std::string warning = "from before";
  EXPECT_EQ(read_tuning(path, "A \"quoted\" \\ device", warning), table);
  EXPECT_EQ(warning, "");
}

TEST_F(TuningFile, IsNothingToWarnOfWhereThereIsNoneOrNoneForTheDevice) {
  EXPECT_EQ(warning(), "");
  write_tuning(path, "B", table_of(16));
  EXPECT_EQ(warning(), "");
}

TEST_F(TuningFile, KeepsTheTablesOfOtherDevicesAndReplacesItsOwn) {
  write_tuning(path, "A", table_of(16));
  write_tuning(path, "B", table_of(32));
  write_tuning(path, "A", table_of(64));

  std::string warning;
  EXPECT_EQ(read_tuning(path, "A", warning), table_of(64));
  EXPECT_EQ(read_tuning(path, "B", warning), table_of(32));
}

TEST_F(TuningFile, LosesNothingToConcurrentWriters) {
  constexpr int writers = 8;
  std::vector<std::thread> threads;
  for (int i = 0; i < writers; ++i) {
    threads.emplace_back([this, i] {
      for (int turn = 0; turn < 5; ++turn) write_tuning(path, "device " + std::to_string(i), table_of(i + 1));
    });
  }
  for (std::thread& thread : threads) thread.join();

  for (int i = 0; i < writers; ++i) {
    std::string warning;
    EXPECT_EQ(read_tuning(path, "device " + std::to_string(i), warning), table_of(i + 1)) << text();
    EXPECT_EQ(warning, "");
  }
}

TEST_F(TuningFile, IsIgnoredWithTheReasonWhereItIsBroken) {
  for (const char* broken : {"", "{", "[1, 2", "{\"format\": \"KokkosNN tuning 2\", \"tunings\": [{}]}",
                             "{\"format\": \"KokkosNN tuning 2\"}", "{\"format\": 1}",
                             "{\"format\": \"KokkosNN tuning 2\", \"tunings\": [\n\n1.5]}",
                             "{\"format\": \"KokkosNN tuning 2\", \"tunings\": [\"A\\", "[[[[[[[[[[[[", "{} {}"}) {
    write(broken);
    const std::string said = warning();
    EXPECT_NE(said.find("KokkosNN: the tuning file " + path + " is ignored: "), std::string::npos) << broken << said;
  }
  write("{\"format\": \"KokkosNN tuning 2\",\n \"tunings\": [\n 1.5]}");
  EXPECT_NE(warning().find("line 3"), std::string::npos) << warning();
}

TEST_F(TuningFile, IsIgnoredWithTheReasonWhereItIsForeignOrOldOrNamesWhatIsNotKnown) {
  write("{\"format\": \"something else\", \"tunings\": []}");
  EXPECT_NE(warning().find("its format is 'something else'"), std::string::npos) << warning();

  write(
      "{\"format\": \"KokkosNN tuning 2\", \"tunings\": [{\"device\": \"A\", \"library\": \"0.0.0\", \"entries\": "
      "[]}]}");
  EXPECT_NE(warning().find("another version than " + std::string(version())), std::string::npos) << warning();

  write("{\"format\": \"KokkosNN tuning 1\", \"tunings\": []}");
  EXPECT_NE(warning().find("its format is 'KokkosNN tuning 1', not 'KokkosNN tuning 2'; run perf/tune"),
            std::string::npos)
      << warning();

  write_tuning(path, "A", table_of(16));
  std::string changed = text();
  changed.replace(changed.find("team_online"), 11, "team_online2");
  write(changed);
  EXPECT_NE(warning().find("'team_online2' is not known"), std::string::npos) << warning();
}

TEST_F(TuningFile, IsIgnoredWithTheReasonWhereItIsAFolderOrCannotBeLookedAt) {
  std::filesystem::create_directories(path);
  EXPECT_EQ(warning(), "KokkosNN: the tuning file " + path + " is ignored: it is a folder");

  const std::string too_long(5000, 'x');
  std::string warning;
  EXPECT_EQ(read_tuning("/tmp/" + too_long, "A", warning), TuningTable{});
  EXPECT_NE(warning.find("is ignored: "), std::string::npos) << warning;
}

TEST_F(TuningFile, IsNoneWhereItIsADevice) {
  std::string warning;
  EXPECT_EQ(read_tuning("/dev/null", "A", warning), TuningTable{});
  EXPECT_EQ(warning, "");
}

/// The tables that plans go by, and back to the tests' file of none at the end.
class SetTuning : public TuningFile {
 protected:
  ~SetTuning() override { set_tuning_from_file(); }

  static TuningTable loaded(std::string_view device) {
    const TuningTable* table = Impl::loaded_tuning(device);
    return table == nullptr ? TuningTable{} : *table;
  }
};

TEST_F(SetTuning, TakesATextInPlaceOfTheFileForAllDevices) {
  write_tuning(path, "A", table_of(16));
  write_tuning(path, "B", table_of(32));
  const std::string of_two = text();
  write_tuning(path, "A", table_of(64));
  write_tuning(path, "C", table_of(128));
  const Variable file("KOKKOSNN_TUNING_FILE", path.c_str());
  set_tuning_from_file();
  EXPECT_EQ(loaded("A"), table_of(64));

  set_tuning(of_two);
  EXPECT_EQ(loaded("A"), table_of(16));
  EXPECT_EQ(loaded("B"), table_of(32));
  EXPECT_EQ(loaded("C"), TuningTable{}) << "the file has it, the text has not";

  set_tuning_from_file();
  EXPECT_EQ(loaded("A"), table_of(64));
  EXPECT_EQ(loaded("C"), table_of(128));
}

TEST_F(SetTuning, TakesATableForOneDeviceAndLeavesTheOthersTheirs) {
  write_tuning(path, "A", table_of(16));
  write_tuning(path, "B", table_of(32));
  const Variable file("KOKKOSNN_TUNING_FILE", path.c_str());
  set_tuning_from_file();

  set_tuning("A", table_of(256));
  EXPECT_EQ(loaded("A"), table_of(256));
  EXPECT_EQ(loaded("B"), table_of(32));

  set_tuning("A", {});
  EXPECT_EQ(loaded("A"), TuningTable{});
}

TEST_F(SetTuning, TurnsTablesOffWhateverFileThereIs) {
  write_tuning(path, "A", table_of(16));
  const Variable file("KOKKOSNN_TUNING_FILE", path.c_str());
  set_tuning_from_file();
  ASSERT_EQ(loaded("A"), table_of(16));

  set_tuning_off();
  EXPECT_EQ(loaded("A"), TuningTable{});
  set_tuning_from_file();
  set_tuning("");
  EXPECT_EQ(loaded("A"), TuningTable{});
}

TEST_F(SetTuning, RefusesATextThatIsNoneAndLeavesTheTablesAsTheyAre) {
  set_tuning("A", table_of(16));
  for (const char* broken : {"{", " ", "{\"format\": \"another\", \"tunings\": []}"}) {
    try {
      set_tuning(broken);
      FAIL() << "nothing was thrown";
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(std::string(error.what()).find("KokkosNN::set_tuning: "), 0u) << error.what();
    }
  }
  EXPECT_EQ(loaded("A"), table_of(16));
}

TEST_F(SetTuning, LeavesOutWhatAnotherVersionHasMade) {
  write_tuning(path, "A", table_of(16));
  std::string old           = text();
  const std::string made_by = "\"library\": \"" + std::string(version()) + "\"";
  old.replace(old.find(made_by), made_by.size(), "\"library\": \"0.0.0\"");

  set_tuning(old);

  EXPECT_EQ(loaded("A"), TuningTable{});
}

TEST_F(SetTuning, HasTheTextOfTheFileForOtherProcessesOrNothing) {
  const Variable file("KOKKOSNN_TUNING_FILE", path.c_str());
  EXPECT_EQ(tuning_text(), "");
  write_tuning(path, "A", table_of(16));
  EXPECT_EQ(tuning_text(), text());

  const auto said = [&] {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(tuning_text(), "");
    return ::testing::internal::GetCapturedStderr();
  };
  write("{");
  EXPECT_NE(said().find(path + " is ignored: "), std::string::npos);
  std::filesystem::remove(path);
  std::filesystem::create_directories(path);
  EXPECT_NE(said().find("it is a folder"), std::string::npos);
}

TEST_F(SetTuning, IsWhatPlansAreMadeByFromThenOn) {
  const Kokkos::DefaultExecutionSpace exec;
  EXPECT_EQ(device_traits(exec).tuning, nullptr);
  set_tuning(device_name(exec), table_of(16));
  const DeviceTraits before = device_traits(exec);
  set_tuning(device_name(exec), table_of(32));

  ASSERT_NE(before.tuning, nullptr);
  EXPECT_EQ(*before.tuning, table_of(16)) << "traits that somebody holds keep their table";
  EXPECT_EQ(*device_traits(exec).tuning, table_of(32));
  set_tuning_off();
  EXPECT_EQ(device_traits(exec).tuning, nullptr);
}

TEST_F(SetTuning, MayBeCalledWhilePlansAreMade) {
  std::vector<std::thread> threads;
  std::atomic<int> strange{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < 200; ++turn) {
        if (i == 0) set_tuning("A", table_of(turn + 1));
        if (i == 1 && turn % 50 == 0) set_tuning_off();
        const TuningTable table = loaded("A");
        if (!table.entries.empty()) strange += table != table_of(table.entries[0].min_cols);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(strange, 0);
}

TEST_F(TuningFile, IsReplacedWhereItIsBroken) {
  write("{");
  write_tuning(path, "A", table_of(16));

  std::string warning;
  EXPECT_EQ(read_tuning(path, "A", warning), table_of(16));
}

TEST_F(TuningFile, ThatCannotBeWrittenIsAnErrorThatNamesIt) {
  write("");
  const std::string below_a_file = path + "/tuning.json";
  try {
    write_tuning(below_a_file, "A", table_of(16));
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(below_a_file), std::string::npos) << error.what();
  }
}

TEST(TuningPath, ComesFromTheVariableThenTheCacheFolderThenTheHome) {
  const Variable home("HOME", "/home/somebody");
  {
    const Variable file("KOKKOSNN_TUNING_FILE", "/a/file");
    EXPECT_EQ(tuning_file(), "/a/file");
  }
  {
    const Variable file("KOKKOSNN_TUNING_FILE", "");
    EXPECT_EQ(tuning_file(), "") << "no file is wanted";
  }
  const Variable file("KOKKOSNN_TUNING_FILE", nullptr);
  {
    const Variable cache("XDG_CACHE_HOME", "/cache");
    EXPECT_EQ(tuning_file(), "/cache/KokkosNN/tuning.json");
  }
  const Variable cache("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(tuning_file(), "/home/somebody/.cache/KokkosNN/tuning.json");
}

/// A GPU with a table.
DeviceTraits tuned_gpu(const TuningTable& table) {
  DeviceTraits traits = h200();
  traits.tuning       = &table;
  return traits;
}

RowProblem rows_of(std::int64_t rows, std::int64_t cols) {
  RowProblem problem;
  problem.rows = rows;
  problem.cols = cols;
  return problem;
}

TEST(TunedPlanner, TakesTheTableBeforeItsOwnPolicyAndTheCallersRequestBeforeTheTable) {
  const TuningTable table = table_of(1024);
  const auto strategy     = [&](const RowProblem& problem, const SoftmaxOptions& options = {}) {
    return make_plan(problem, tuned_gpu(table), options).strategy;
  };
  RowProblem log_softmax = rows_of(4096, 2048), logsumexp = log_softmax, bf16 = log_softmax, strided = log_softmax;
  log_softmax.op       = RowOperator::log_softmax;
  logsumexp.op         = RowOperator::logsumexp;
  bf16.x_type          = ElementType::bf16;
  strided.x_col_stride = 3;

  EXPECT_EQ(strategy(rows_of(4096, 2048)), RowStrategy::team_online);
  EXPECT_EQ(strategy(log_softmax), RowStrategy::team_online);
  for (const RowProblem& other :
       {rows_of(4096, 1023), rows_of(4096, 2049), rows_of(99, 2048), logsumexp, bf16, strided}) {
    EXPECT_EQ(strategy(other), make_plan(other, tuned_gpu({})).strategy);
    EXPECT_NE(strategy(other), RowStrategy::team_online);
  }
  EXPECT_EQ(strategy(rows_of(4096, 2048), {.plan = {.strategy = RowStrategy::team_scratch}}),
            RowStrategy::team_scratch);
  EXPECT_NE(strategy(rows_of(4096, 2048), {.determinism = Determinism::batch_invariant}), RowStrategy::team_online);
}

TEST(TunedPlanner, GoesByItsPolicyWhereTheTablesPlanCannotServe) {
  const TuningTable table = table_of(60000, RowStrategy::vector_lanes);
  const RowProblem rows   = rows_of(4096, 70000);

  EXPECT_EQ(make_plan(rows, tuned_gpu(table)), [&] {
    DeviceTraits untuned = tuned_gpu(table);
    untuned.tuning       = nullptr;
    return make_plan(rows, untuned);
  }());
}

TEST(TunedPlanner, TheTestsRunWithoutATuningFile) {
  EXPECT_EQ(device_traits(Kokkos::DefaultExecutionSpace()).tuning, nullptr);
  EXPECT_FALSE(device_name(Kokkos::DefaultExecutionSpace()).empty());
}

}  // namespace KokkosNNTest
