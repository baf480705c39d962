module example.com/foreign

go 1.26

require dahl v0.0.0

replace dahl => ../../..
