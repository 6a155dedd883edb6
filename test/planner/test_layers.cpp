// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
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

/// A public header and the headers that it brings, by their names in the folder KokkosNN. Generated headers of calls
/// bring declarations alone.
void collect(const std::string& header, std::set<std::string>& all) {
  if (!all.insert(header).second) return;
  const std::regex include("#include <KokkosNN/([^>]+)>");
  std::ifstream lines(KOKKOSNN_HEADERS "/" + header);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_search(line, found, include)) collect(found[1], all);
  }
}

TEST(Layers, AFamilysHeaderBringsNoKernels) {
  const std::regex kernels(
      "impl/(gpu|host|math|operators|reductions|inputs/(?!row_map|row_offsets))/?.*\\.hpp|.*launch.*");
  for (const char* header : {"softmax.hpp", "gradients.hpp", "masked_softmax.hpp", "cross_entropy.hpp", "segmented.hpp",
                             "add_norm.hpp", "attention.hpp", "column_sums.hpp", "norm.hpp", "quantized.hpp"}) {
    std::set<std::string> all;
    collect(header, all);
    EXPECT_GT(all.size(), 10U) << header;
    for (const std::string& each : all) EXPECT_FALSE(std::regex_match(each, kernels)) << header << " brings " << each;
  }
}

}  // namespace KokkosNNTest
