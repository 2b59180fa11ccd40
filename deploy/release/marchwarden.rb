# The formula for Homebrew. .ci/release.sh fills in what stands between @.
class Marchwarden < Formula
  desc "Answers with a citation for every sentence, from your own documents"
  homepage "https://forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@URL@/marchwarden-@VERSION@-darwin-arm64.tar.gz"
      sha256 "@DARWIN_ARM64@"
    end
    on_intel do
      url "@URL@/marchwarden-@VERSION@-darwin-amd64.tar.gz"
      sha256 "@DARWIN_AMD64@"
    end
  end
  on_linux do
    on_arm do
      url "@URL@/marchwarden-@VERSION@-linux-arm64.tar.gz"
      sha256 "@LINUX_ARM64@"
    end
    on_intel do
      url "@URL@/marchwarden-@VERSION@-linux-amd64.tar.gz"
      sha256 "@LINUX_AMD64@"
    end
  end

  def install
    bin.install "marchwarden"
    man1.install Dir["man/*.1"]
    man7.install Dir["man/*.7"]
    bash_completion.install "completions/marchwarden.bash" => "marchwarden"
    zsh_completion.install "completions/marchwarden.zsh" => "_marchwarden"
    fish_completion.install "completions/marchwarden.fish"
  end

  test do
    assert_match "Paris", shell_output("#{bin}/marchwarden ask -q 'What is the capital of France?'")
  end
end
