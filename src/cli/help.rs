//! What help and the manual page say beyond the options themselves.

use clap::CommandFactory;

use super::Cli;
use crate::error::Exit;

/// The exit codes, for the help text.
pub(super) fn exits() -> String {
    let codes = Exit::ALL.map(|exit| {
        let meaning = folded(exit.meaning(), 20);
        format!("  {:>3}  {:<12} {meaning}\n", exit.code(), exit.name())
    });
    format!("Exit codes:\n{}", codes.concat())
}

/// Text in lines of 80 columns, each but the first indented: clap keeps the lines of this part of its help.
fn folded(text: &str, indent: usize) -> String {
    let mut column = indent;
    let mut lines = String::new();
    for word in text.split(' ') {
        if column + word.len() > 79 {
            lines += &format!("\n{:indent$}", "");
            column = indent;
        } else if column > indent {
            lines.push(' ');
        }
        lines += word;
        column += word.len() + 1;
    }
    lines
}

/// One page for all commands: each one's options follow those of herd itself.
pub(super) fn manual() -> String {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let commands: Vec<_> = root.get_subcommands().cloned().collect();
    let man = clap_mangen::Man::new(root);
    let mut page = Vec::new();
    // Writing to memory can't fail.
    let _ = man.render_title(&mut page);
    let _ = man.render_name_section(&mut page);
    let _ = man.render_synopsis_section(&mut page);
    let _ = man.render_options_section(&mut page);
    for command in commands {
        let name = command.get_name().to_uppercase();
        let leaf = clap_mangen::Man::new(command);
        page.extend(format!(".SH HERD {name}\n").bytes());
        for section in [
            clap_mangen::Man::render_description_section,
            clap_mangen::Man::render_synopsis_section,
            clap_mangen::Man::render_options_section,
        ] {
            let mut text = Vec::new();
            let _ = section(&leaf, &mut text);
            // A section of a command's own stands under the command.
            let text = String::from_utf8_lossy(&text).replace("\n.SH ", "\n.SS ");
            let text = text
                .strip_prefix(".SH ")
                .map_or(text.clone(), |t| format!(".SS {t}"));
            page.extend(text.bytes());
        }
    }
    let _ = man.render_extra_section(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn help_folds_at_80_columns() {
        assert_eq!(folded("a bc", 70), "a bc");
        assert_eq!(
            folded("aaaa bbbb cccc", 70),
            format!("aaaa bbbb\n{:70}cccc", "")
        );
    }
}
