class FileEditor < Formula
  desc "Text files for AI agents: read and edit one folder over MCP"
  homepage "{{repository}}"
  version "{{version}}"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "{{download}}/{{archive darwin-arm64}}"
      sha256 "{{sha256 darwin-arm64}}"
    end
    on_intel do
      url "{{download}}/{{archive darwin-x64}}"
      sha256 "{{sha256 darwin-x64}}"
    end
  end

  on_linux do
    on_arm do
      url "{{download}}/{{archive linux-arm64}}"
      sha256 "{{sha256 linux-arm64}}"
    end
    on_intel do
      url "{{download}}/{{archive linux-x64}}"
      sha256 "{{sha256 linux-x64}}"
    end
  end

  def install
    bin.install "file-editor", "codex-cli-acp"
    man1.install "man/file-editor.1"
    bash_completion.install "completions/file-editor.bash" => "file-editor"
    zsh_completion.install "completions/_file-editor"
    fish_completion.install "completions/file-editor.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/file-editor --version")
  end
end
