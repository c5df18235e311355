# The program itself says what may come next; this is how PowerShell is told.
Register-ArgumentCompleter -Native -CommandName 'file-editor' -ScriptBlock {
    param($current, $line, $cursor)
    $before = @($line.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { $_.Extent.Text })
    $program = Get-Command 'file-editor' -CommandType Application | Select-Object -First 1
    & $program 'complete' "--word=$current" '--' $before 2>$null | ForEach-Object {
        $word, $meaning, $prefix = $_ -split "`t", 3
        if ($word) {
            if (-not $meaning) { $meaning = $word }
            [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $meaning)
            return
        }
        $path = $current.Substring($prefix.Length)
        [System.Management.Automation.CompletionCompleters]::CompleteFilename($path) |
            Where-Object { $meaning -ne 'folders' -or $_.ResultType -eq 'ProviderContainer' } |
            ForEach-Object {
                [System.Management.Automation.CompletionResult]::new(
                    $prefix + $_.CompletionText, $_.ListItemText, $_.ResultType, $_.ToolTip)
            }
    }
}
