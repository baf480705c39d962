// Package files reads networks from TOML and ONNX files, and reads and writes lowerings as TOML.
package files
