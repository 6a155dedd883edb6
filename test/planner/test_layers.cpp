// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

// Layers: planner and kernels share a vocabulary, and neither includes the other.

namespace KokkosNNTest {

/// The lines of a folder's files that include one of some headers, with the file's name.
std::vector<std::string> includes(const std::filesystem::path& folder, const std::string& headers) {
  const std::regex include("#include [<\"](" + headers + ")");
  std::vector<std::string> found;
  int files = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (!file.is_regular_file()) continue;
    ++files;
    std::ifstream lines(file.path());
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_search(line, include)) found.push_back(file.path().filename().string() + ": " + line);
    }
  }
  EXPECT_GT(files, 0) << folder;
  return found;
}

TEST(Layers, KernelsAndWhatTheyAreMadeOfIncludeNoPlanner) {
  const std::string planner =
      "KokkosNN/(plan|tuning)\\.hpp|KokkosNN/impl/(traits|compiled_kernels|call/\\w*plan)\\.hpp";
  for (const char* folder : {"gpu", "host", "inputs", "math", "operators", "reductions"}) {
    const std::string path = KOKKOSNN_HEADERS "/impl/" + std::string(folder);
    EXPECT_EQ(includes(path, planner), std::vector<std::string>{});
  }
}

TEST(Layers, ThePlannerIncludesNoKernelsAndNothingThatTheyAreMadeOf) {
  const std::string kernels = "KokkosNN/impl/(gpu|math|operators|reductions|inputs)/|KokkosNN/impl/host/(?!shapes)";
  EXPECT_EQ(includes(KOKKOSNN_PLANNER, kernels), std::vector<std::string>{});
}

}  // namespace KokkosNNTest
