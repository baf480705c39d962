// Package onnx reads and writes the part of ONNX files that a network of layers needs: operators with their
// attributes, weights, and the shapes of inputs. What the operators mean is not known here.
//
// Read first: [Decode], [Encode]. The format is defined by onnx.proto, https://onnx.ai/onnx/repo-docs/IR.html. Shapes are in
// elements, outermost first. Files are written with version 20 of the operators, or 23 where they have attention.
package onnx
