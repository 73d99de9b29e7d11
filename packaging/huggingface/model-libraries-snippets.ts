export const df11 = (model: ModelData): string[] => {
	const id = JSON.stringify(model.id);
	if (model.config?.diffusers) {
		const takesImage = /Control|Edit|Fill|Img2Img|Inpaint|Kontext|Layered|Redux/.test(model.config.diffusers._class_name ?? "");
		const picture = model.pipeline_tag === "text-to-image" && !takesImage ? `\npipe("a cat").images[0].save("cat.png")` : "";
		return [`import df11

pipe = df11.load_pipeline(${id})${picture}`];
	}
	if (model.config?.architectures?.[0]?.endsWith("ForCausalLM")) {
		return [`import df11, transformers

model = df11.load(${id})
tokenizer = transformers.AutoTokenizer.from_pretrained(${id})
inputs = tokenizer("The three laws of thermodynamics are", return_tensors="pt").to(model.device)
print(tokenizer.decode(model.generate(**inputs, max_new_tokens=128)[0]))`];
	}
	if (model.config?.architectures?.[0]?.endsWith("ForConditionalGeneration") && model.pipeline_tag === "image-text-to-text") {
		return [`import df11, transformers

model = df11.load(${id})
processor = transformers.AutoProcessor.from_pretrained(${id})
picture = "https://huggingface.co/datasets/huggingface/documentation-images/resolve/main/pipeline-cat-chonk.jpeg"
chat = [{"role": "user", "content": [{"type": "image", "url": picture}, {"type": "text", "text": "What is this?"}]}]
inputs = processor.apply_chat_template(chat, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt")
output = model.generate(**inputs.to(model.device, model.dtype), max_new_tokens=128)
print(processor.batch_decode(output, skip_special_tokens=True)[0])`];
	}
	return [`import df11

model = df11.load(${id})`];
};
