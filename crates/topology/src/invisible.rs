//! Characters that a person does not see, or that change how the characters around them are seen.

/// Whether a character is a control, a mark of direction, a joiner or filler without width, a separator of lines, or one
/// of the others that Unicode asks programs not to draw.
///
/// A name with one of them looks like another name, on a terminal and in a log. Source: Unicode 16, properties
/// `Default_Ignorable_Code_Point` and `Bidi_Control`, with the separators of lines and of annotations.
pub fn is_invisible(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// The same for a text of several lines, whose line breaks and tabs are seen.
pub(crate) fn is_invisible_in_lines(character: char) -> bool {
    is_invisible(character) && !matches!(character, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_all_scripts_are_seen_and_marks_of_direction_are_not() {
        assert!("aZ0-_./ é日本שלום؟ß😀".chars().all(|character| !is_invisible(character)));
        let marks = "\0\n\t\u{1b}\u{7f}\u{85}\u{ad}\u{61c}\u{200b}\u{200d}\u{200f}\u{2028}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}";
        assert!(marks.chars().chain(['\u{e0041}']).all(is_invisible));
        assert!(!is_invisible_in_lines('\n') && is_invisible_in_lines('\u{202e}'));
    }
}
