package platform

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// WriteTOML writes a platform so that Parse reads back the same one, to the last bit of every
// number. The models go into the same file. The platform must pass Check.
func (p *Platform) WriteTOML(w io.Writer) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("write a platform: %w", err)
	}
	_, err := io.WriteString(w, p.encode())
	return err
}

// Hash identifies the platform: the hex SHA-256 of its TOML form. It is the same for two files
// that differ in comments, units or layout only.
func (p *Platform) Hash() string {
	sum := sha256.Sum256([]byte(p.encode()))
	return hex.EncodeToString(sum[:])
}

func (p *Platform) encode() string {
	var f form
	p.keys(&f, nil)
	tables(&f, "model", &p.Models, (*Model).keys)
	return strings.Join(f.out, "\n") + "\n"
}
